"""The whole of it over gRPC: synced, edited, rebuilt, compared and searched."""

from __future__ import annotations

import json
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from commands import run
from qdrant_http import Options, running, started

from syncer.errors import ExitCode, TargetUnavailableError
from syncer.retry import within
from syncer.settings import Settings

CONFIG = """
[source]
database = "memory.db"
[target]
url = "{url}"
grpc = true
grpc_port = {port}
check_interval = 0
[embed]
provider = "hash"
dimension = 8
chunk_tokens = 400
"""
READS = {"Points.Scroll", "Points.Get", "Points.Count", "Points.Query"}
WRITES = {"Points.Upsert", "Points.UpdateBatch", "Points.Delete", "Points.CreateFieldIndex"}
COLLECTIONS = {"Collections.Create", "Collections.Get", "Collections.UpdateAliases"}


def settings_for(folder: Path, url: str, port: int, **options: object) -> Settings:
    """Return settings for the memory in `folder` and gRPC."""
    return wire.settings(folder, url, **{"target.grpc": True, "target.grpc_port": port, **options})


def test_a_collection_is_made_kept_built_again_and_searched_over_grpc_alone(
    tmp_path: Path,
) -> None:
    texts = ["the ferry is late", "the market is closed", "the tide is high", "text " * 2_000]
    path = memory.make_memory(tmp_path, texts)
    with running(Options(folder=tmp_path / "storage"), grpc=True) as server:
        config = CONFIG.format(url=server.url, port=server.rpc.port)
        (tmp_path / "syncer.toml").write_text(config)
        done = run("once", cwd=tmp_path)
        assert done.code == ExitCode.OK, done.err
        memory.execute(path, "UPDATE memory_events SET content = 'a ship sails' WHERE id = 1")
        memory.execute(path, "UPDATE memory_events SET agent = 'b' WHERE id = 4")
        memory.execute(path, "DELETE FROM memory_events WHERE id = 2")
        settings = settings_for(
            tmp_path,
            server.url,
            server.rpc.port,
            **{"sparse.enabled": True, "sparse.b": 0.75, "embed.chunk_tokens": 400},
        )
        assert wire.once(settings)[0] == ExitCode.OK
        before = memory.points_in(settings)
        code, told = wire.rebuild(settings)
        assert code == ExitCode.OK, told.error
        assert told.result is not None
        assert told.result.reused == told.result.chunks > 3  # the old one has lent all vectors
        assert memory.points_in(settings) == before
        code, told = wire.verify(settings)
        assert (code, told.comparisons[-1].clean) == (ExitCode.OK, True)
        done = run("search", "ship", "--json", cwd=tmp_path)
        assert json.loads(done.out)[0]["document"] == "a ship sails"
        names = set(server.rpc.names())
        assert names >= READS | WRITES | COLLECTIONS
        assert server.connections.made == 0  # nothing went over REST
        secure = server.url.replace("http:", "https:")
        done = run(
            "once", "--set", f"target.url={secure}", "--set", "log.format=json", cwd=tmp_path
        )
        assert done.code == ExitCode.TARGET
        assert len(done.log) == len(done.err.splitlines())  # gRPC puts no line of its own between


def test_a_server_that_is_killed_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    with started(tmp_path / "storage", grpc=True) as program:
        assert program.grpc_port
        settings = settings_for(
            tmp_path, program.url, program.grpc_port, **{"target.retry_budget": 1}
        )
        with memory.pipeline_for(settings) as (pipeline, connection):
            memory.sync(pipeline)
            memory.execute(settings.source.database, "UPDATE memory_events SET content = 'new'")
            program.kill()
            for _ in range(5):
                with pytest.raises(TargetUnavailableError, match="gRPC UNAVAILABLE"):
                    connection.check_version()
            assert wire.once(settings)[0] == ExitCode.TARGET
            program.start()
            patient = within(lambda _: 60)
            patient(connection.check_version)
            memory.sync(pipeline)
        assert wire.documents(settings) == {1: "new", 2: "new"}
