"""The Qdrant server of a benchmark: the one of QDRANT_URL, or the tests' own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent / "tests"


@contextmanager
def server() -> Iterator[str]:
    """Yield the address of a Qdrant server; the tests' own, in its own process, if none is set."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    sys.path.insert(0, str(_TESTS))
    from qdrant_http import started  # noqa: PLC0415 - only where it is needed

    with tempfile.TemporaryDirectory() as folder, started(Path(folder) / "qdrant") as program:
        yield program.url
