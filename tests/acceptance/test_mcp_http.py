"""Over HTTP, the official mcp-server-qdrant reads what syncer wrote, through the alias."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from acceptance.test_mcp import QUESTIONS, ROWS, TESTS, entries, variables_in
from acceptance.test_mcp import server as server  # noqa: PLC0414 - a fixture
from fresh_environment import Environment, run
from memory import make_memory
from qdrant_http import Options, running

pytestmark = [
    pytest.mark.timeout(600),  # seconds; the first run installs the MCP server
    pytest.mark.skipif(
        sys.version_info >= (3, 14),
        reason="mcp-server-qdrant 0.8.1 wants pydantic < 2.12, which has no wheel for Python 3.14",
    ),
]


def test_qdrant_find_answers_over_http_with_the_right_rows_first(
    server: Environment, tmp_path: Path
) -> None:
    make_memory(tmp_path, list(ROWS.values()))
    with running(Options(folder=tmp_path / "storage")) as qdrant:
        variables = {
            **variables_in(tmp_path),
            "SYNCER_TARGET__URL": qdrant.url,
            "QDRANT_URL": qdrant.url,
            "QDRANT_READ_ONLY": "true",
        }
        run(sys.executable, "-m", "syncer", "once", cwd=tmp_path, variables=variables)
        client, wrapper = TESTS / "mcp_client.py", TESTS / "mcp_server_wrapper.py"
        command = map(str, (server.python, client, wrapper, *QUESTIONS))
        said = json.loads(run(*command, cwd=tmp_path, variables=variables).stdout)
    best = [entries("\n".join(texts))[0][0] for texts in said["answers"]]
    assert best == [ROWS[row] for row in QUESTIONS.values()]
