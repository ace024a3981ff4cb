"""Whatever would make other vectors is refused before a write, and the old ones stay of use.

Real files, real processes: settings, a model's weights, and libraries that behave otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

import memory
import pytest
from commands import Outcome, run
from memories import contents, settings_of
from other_libraries import changed, without

from syncer.embed import offline
from syncer.embed.fingerprints import file_sha256

LONG = " ".join(f"The boat of day {day} carried salt und brought letters home." for day in range(9))
ROWS = [
    "The harbour is closed in winter.",
    "Das Boot und der Hafen liegen im Nebel.",
    LONG,
    "协程里不要读文件",
]
SETTINGS = """
[source]
database = "memory.db"
[embed]
provider = "hash"
dimension = 64
chunk_tokens = 24
[sparse]
language = "german"
"""
MODEL = """
[source]
database = "memory.db"
[embed]
model_path = "model"
"""
SECONDS = 120  # for a process on a busy machine
REBUILD = "`syncer rebuild`"

MORE_STOP_WORDS = """
import stop_words
before = stop_words.get_stop_words
stop_words.get_stop_words = lambda language: [*before(language), "boot", "hafen"]
"""
OTHER_CUTS = """
import semantic_text_splitter
class Halving:
    def __init__(self, capacity):
        self.half = max(1, capacity // 2)
    def chunk_indices(self, text):
        return [(at, text[at:at + self.half]) for at in range(0, len(text), self.half)]
    def chunks(self, text):
        return [chunk for _, chunk in self.chunk_indices(text)]
semantic_text_splitter.TextSplitter = Halving
"""
FIRST_VECTOR = """
from fastembed.text.pooled_embedding import PooledEmbedding
PooledEmbedding.mean_pooling = classmethod(lambda cls, output, mask: output[:, 0])
"""


@dataclass(frozen=True)
class Change:
    """What differs from the run that made the collection, and what the refusal says of it."""

    said: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    library: str = ""
    words_are_lost: bool = False  # whether the old sparse vectors cannot be asked any more
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, cwd: Path) -> Outcome:
        """Run a command under the change."""
        options = [
            part for key, value in self.options.items() for part in ("--set", f"{key}={value}")
        ]
        library = changed(cwd.parent / "library", self.library) if self.library else {}
        environment = {**library, **self.environment}
        return run(*arguments, *options, cwd=cwd, timeout=SECONDS, **environment)


CHANGES = {
    "passage prefix": Change(
        ('dense.passage_prefix was "", now "passage: "',), {"embed.passage_prefix": "passage: "}
    ),
    "query prefix": Change(
        ('dense.query_prefix was "", now "query: "',), {"embed.query_prefix": "query: "}
    ),
    "chunk size": Change(("text.chunk_size was 24, now 30",), {"embed.chunk_tokens": "30"}),
    "chunk overlap": Change(("text.chunk_overlap was 0, now 4",), {"embed.chunk_overlap": "4"}),
    "a splitter that cuts otherwise": Change(
        ('text.chunk_canary was "', '", now "'), library=OTHER_CUTS
    ),
    "a library's stop words": Change(
        ('sparse.stopwords.sha256 was "', '", now "'), library=MORE_STOP_WORDS, words_are_lost=True
    ),
    "sparse language": Change(
        ('sparse.language was "german", now "english"', 'sparse.stemmer was "snowball/german"'),
        {"sparse.language": "english"},
    ),
    "k": Change(("sparse.k was 1.2, now 2.0",), {"sparse.k": "2"}),
    "b": Change(("sparse.b was 0.75, now 0.25",), {"sparse.b": "0.25"}),
    "sparse off": Change(("sparse was there, now absent",), {"sparse.enabled": "false"}),
    "dimension": Change(("dimension was 64, now 128",), {"embed.dimension": "128"}),
    "vector's name": Change(('vector was "hash-64", now "mine"',), {"target.vector": "mine"}),
    "provider": Change(
        ('dense.provider was "hash", now "fastembed"', "dimension was 64, now 384"),
        {"embed.provider": "fastembed"},
    ),
}
REBUILT = ("chunk size", "a library's stop words", "sparse off", "provider")


def make(folder: Path, settings: str) -> Path:
    """Make a memory with these settings."""
    folder.mkdir()
    memory.make_memory(folder, ROWS)
    (folder / "syncer.toml").write_text(settings)
    return folder


def in_sync_but_for_an_edit(folder: Path) -> Path:
    """Sync, then edit a row."""
    done = run("once", cwd=folder)
    assert done.code == 0, done.err
    memory.execute(
        folder / "memory.db",
        "UPDATE memory_events SET content = 'The harbour is open.' WHERE id = 1",
    )
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_sync_but_for_an_edit(make(tmp_path_factory.mktemp("base") / "memory", SETTINGS))


@pytest.fixture(scope="module")
def base_of_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(tmp_path_factory.mktemp("model") / "memory", MODEL)
    offline.assemble(folder).rename(folder / "model")
    return in_sync_but_for_an_edit(folder)


@pytest.fixture(scope="module")
def answers(base: Path) -> dict[str, list[object]]:
    """What is found before anything changes, by mode."""
    return {mode: asked(run(*question(mode), cwd=base)) for mode in ("dense", "hybrid")}


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "memory"))


@pytest.fixture
def of_model(base_of_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base_of_model, tmp_path / "memory"))


def state_of(folder: Path) -> tuple[object, ...]:
    """Return position and points."""
    points = memory.points_in(settings_of(folder))
    with memory.sqlite3.connect(folder / "memory.db") as connection:
        return points, connection.execute("SELECT * FROM syncer_generations").fetchall()


def question(mode: str, text: str = "closed harbour") -> tuple[str, ...]:
    """Return a search's arguments."""
    return ("search", "--json", "--mode", mode, text)


def asked(outcome: Outcome) -> list[object]:
    """Return the hits of a search."""
    assert outcome.code == 0, outcome.err + outcome.out
    return list(json.loads(outcome.out))


def assert_refused(folder: Path, change: Change) -> None:
    """See that a run is refused with all of `said` and leaves every byte as it was."""
    before, files = state_of(folder), contents(folder)
    refused = change.run("once", cwd=folder)
    assert (refused.code, refused.out) == (4, "")
    (event,) = refused.log
    assert event["error"] == "RecipeError"
    for part in change.said:
        assert part in str(event["message"])
    assert REBUILD in str(event["hint"])
    assert contents(folder) == files
    assert state_of(folder) == before


@pytest.mark.rule("EM-10")
@pytest.mark.rule("EM-12")
@pytest.mark.rule("CS-09")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_recipe_is_refused_with_both_sides_before_a_write(
    folder: Path, name: str
) -> None:
    assert_refused(folder, CHANGES[name])


@pytest.mark.rule("EM-12")
@pytest.mark.rule("CS-08")
@pytest.mark.parametrize("name", CHANGES)
def test_the_old_collection_is_asked_by_its_own_recipe(
    folder: Path, answers: dict[str, list[object]], name: str
) -> None:
    change = CHANGES[name]
    mode = "dense" if change.words_are_lost else "hybrid"
    assert asked(change.run(*question(mode), cwd=folder)) == answers[mode]


def test_words_that_are_cut_otherwise_by_now_are_not_asked_for(folder: Path) -> None:
    change = CHANGES["a library's stop words"]
    for mode in ("sparse", "hybrid"):
        refused = change.run("search", "--mode", mode, "Hafen", cwd=folder)
        assert refused.code == 4
        assert "stopwords is {" in refused.err
        assert REBUILD in refused.err


@pytest.mark.rule("EM-10")
@pytest.mark.parametrize("name", REBUILT)
def test_starting_over_goes_on_by_the_changed_recipe(folder: Path, name: str) -> None:
    change = CHANGES[name]
    done = change.run("once", "--json", "--start-over", cwd=folder)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["embedded"], found["caught_up"]) == (4, True)


def test_sparse_vectors_switched_on_later_are_refused_as_well(tmp_path: Path) -> None:
    folder = make(tmp_path / "memory", SETTINGS + "enabled = false\n")
    in_sync_but_for_an_edit(folder)
    assert_refused(folder, Change(("sparse was absent, now there",), {"sparse.enabled": "true"}))


# a real model


def swap(folder: Path) -> None:
    """Put another model in the place of the first: same name, same dimension, other weights."""
    path = folder / "model" / "model.onnx"
    data = bytearray(path.read_bytes())
    third = len(data) // 3  # amid the table of words, which is half of the file
    weights = slice(third, third + 4_000_000)
    data[weights] = bytes(value ^ 0x3F for value in data[weights])
    path.unlink()
    path.write_bytes(data)


@pytest.mark.rule("EM-10")
def test_em_10_a_model_swapped_for_another_of_the_same_dimension_is_refused(
    of_model: Path,
) -> None:
    original, path = offline.FILES[0].sha256, of_model / "model" / "model.onnx"
    path.rename(of_model / "kept.onnx")
    shutil.copy(of_model / "kept.onnx", path)
    swap(of_model)
    other = file_sha256(path)
    said = f'dense.files.model.onnx was "{original}", now "{other}"'
    assert_refused(of_model, Change((said,)))

    dense = run("search", "--mode", "dense", "harbour", cwd=of_model)
    assert dense.code == 4
    assert "cannot be asked" in dense.err
    assert said in dense.err
    assert REBUILD in dense.err
    assert asked(run(*question("sparse", "harbour"), cwd=of_model))

    started = run("once", "--start-over", cwd=of_model)
    assert started.code == 0, started.err
    memory.execute(of_model / "memory.db", "DELETE FROM memory_events WHERE id = 2")
    later = run("once", "--json", cwd=of_model)
    assert (later.code, json.loads(later.out)["deleted"]) == (0, 1), later.err
    assert asked(run(*question("dense", "harbour"), cwd=of_model))


@pytest.mark.rule("EM-10")
def test_a_model_that_is_put_back_goes_on_where_it_was(of_model: Path) -> None:
    path = of_model / "model" / "model.onnx"
    shutil.copy(path, of_model / "kept.onnx")
    swap(of_model)
    assert run("once", cwd=of_model).code == 4
    (of_model / "kept.onnx").replace(path)
    done = run("once", "--json", cwd=of_model)
    assert (done.code, json.loads(done.out)["embedded"]) == (0, 1), done.err


@pytest.mark.parametrize("there", ["in the settings' folder", "elsewhere"])
def test_after_the_settings_name_another_model_the_old_one_is_asked_where_it_can_be_found(
    of_model: Path, tmp_path: Path, there: str
) -> None:
    before = asked(run(*question("dense", "harbour"), cwd=of_model))
    (of_model / "other").mkdir()
    folder, gone = "other", {}
    if there == "in the settings' folder":
        modules = (file.module for file in offline.FILES)
        folder, gone = "model", without(tmp_path / "empty", *modules)
    change = Change(
        (), {"embed.model": "BAAI/bge-small-en-v1.5", "embed.model_path": folder}, environment=gone
    )
    assert change.run("once", cwd=of_model).code == 7  # its files are not there
    assert asked(change.run(*question("dense", "harbour"), cwd=of_model)) == before


@pytest.mark.rule("EM-11")
def test_em_11_a_library_that_makes_other_vectors_is_refused_and_the_words_are_still_asked(
    of_model: Path,
) -> None:
    change = Change(("the same sentence now has another vector (cosine 0.",), library=FIRST_VECTOR)
    assert_refused(of_model, change)
    assert change.run("search", "--mode", "dense", "harbour", cwd=of_model).code == 4
    assert asked(change.run(*question("sparse", "harbour"), cwd=of_model))
    assert change.run("once", "--start-over", cwd=of_model).code == 0


@pytest.mark.rule("EM-16")
def test_em_16_a_collection_with_vectors_of_another_size_is_refused_with_both(
    folder: Path,
) -> None:
    with memory.connect(memory.specs.target_spec(settings_of(folder))) as connection:
        client = connection.client
        (found,) = client.get_collections().collections
        config = client.get_collection(found.name).config
        client.delete_collection(found.name)
        client.create_collection(
            found.name,
            vectors_config={
                "hash-64": memory.models.VectorParams(
                    size=32, distance=memory.models.Distance.COSINE
                )
            },
            sparse_vectors_config=config.params.sparse_vectors,
            metadata=config.metadata,
        )
        client.update_collection_aliases(
            [
                memory.models.CreateAliasOperation(
                    create_alias=memory.models.CreateAlias(
                        collection_name=found.name, alias_name="memory"
                    )
                )
            ]
        )
    files = contents(folder)
    refused = run("once", cwd=folder)
    assert refused.code == 4
    assert "hash-64 (32, Cosine), its description says hash-64 (64, Cosine)" in refused.err
    assert "`syncer rebuild`" in refused.err
    assert contents(folder) == files


@pytest.mark.rule("CS-10")
def test_a_question_is_read_in_the_same_form_as_the_rows(folder: Path) -> None:
    memory.execute(
        folder / "memory.db", "UPDATE memory_events SET content = 'größte Fähre' WHERE id = 1"
    )
    assert run("once", cwd=folder).code == 0
    composed = asked(run(*question("dense", "größte Fähre"), cwd=folder))
    decomposed = asked(run(*question("dense", normalize("NFD", "größte Fähre")), cwd=folder))
    assert composed == decomposed
    undecodable = "größte \udcff"  # as Python reads a byte of an argument that is no UTF-8
    assert asked(run(*question("hybrid", undecodable), cwd=folder))
