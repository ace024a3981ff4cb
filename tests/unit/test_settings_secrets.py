"""Settings: secrets are found where they are kept, and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from settings_loading import DATABASE, KEY, given, problems, refusal

from syncer.errors import SettingsError
from syncer.settings import load


def test_the_api_key_is_read_from_its_file_when_settings_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"  {KEY}\n")
    (tmp_path / "syncer.toml").write_text(
        '[source]\ndatabase = "m.db"\n[target]\napi_key_file = "key"'
    )
    secret = load(tmp_path / "syncer.toml", environ={}).target.api_key
    assert secret
    assert secret.get_secret_value() == KEY


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (None, "cannot be read: No such file or directory"),
        (b" \n", "the file is empty"),
        (b"%b\nsecond" % KEY.encode(), "one line of visible ASCII"),
        (b"\xff" + KEY.encode(), "one line of visible ASCII"),
    ],
)
def test_an_api_key_file_holds_a_key(tmp_path: Path, data: bytes | None, cause: str) -> None:
    if data is not None:
        (tmp_path / "key").write_bytes(data)
    line = refusal(target__api_key_file=tmp_path / "key")
    assert line.startswith("target.api_key_file = *** (option target.api_key_file): ")
    assert cause in line
    assert KEY not in line


def test_a_key_and_a_key_file_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("other")
    line = refusal(target__api_key=KEY, target__api_key_file=tmp_path / "key")
    assert "excludes target.api_key" in line
    assert given(target__api_key=" ").target.api_key is None


def test_settings_show_no_secret() -> None:
    settings = given(target__api_key=KEY, target__url="https://h")
    shown = [repr(settings), str(settings), repr(settings.target), json.dumps(settings.redacted())]
    assert settings.target.api_key
    assert settings.target.api_key.get_secret_value() == KEY
    assert not [text for text in shown if KEY in text]
    assert settings.redacted()["target"]["api_key"] == "**********"


@pytest.mark.parametrize(
    "options",
    [
        {"target.api_key": f"{KEY} {KEY}"},
        {"target.api_key": [KEY]},
        {"target.api_key_file": KEY},
        {"target.apikey": KEY},
        {"target.password": KEY},
        {"target": KEY},
        {"target.url": f"https://user:{KEY}@host"},
        {"target.url": f"https://user:a/?#@{KEY}@host"},
        {"target.url": f"https://user:a/{KEY}@host"},
        {"target.url": f"user:{KEY}@host"},
        {"target.url": f"https://host/?api-key={KEY}"},
        {"target.url": f"https://host#{KEY}"},
        {"target.url": [f"https://user:{KEY}@host"]},
        {"target.collection": f"https://user:{KEY}@host"},
        {"target.url": f"https://{'a' * 70}:{KEY}@host"},
        {"source.database": f"file:m.db?key={KEY}"},
        {"sync.window_rows": {"a": KEY}},
    ],
)
def test_no_problem_shows_a_secret(options: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, environ={}, options=DATABASE | options)
    error = caught.value
    assert "(1 problem)" in error.message
    assert KEY not in f"{error}{error!r}{error.args}"
    assert error.__cause__ is None
    assert error.__context__ is None


def test_no_problem_shows_a_secret_from_the_file_or_a_variable(tmp_path: Path) -> None:
    text = f"""
        target.api_kee = "{KEY}"
        target.vector = {{ api_key = "{KEY}" }}
        password = "{KEY}"
        embed = "{KEY}"
    """
    environ = {"SYNCER_TARGET__API_KEY": f"{KEY} {KEY}", "SYNCER_API_KEE": KEY}
    lines = problems(text, tmp_path, environ=environ, options=DATABASE)
    assert len(lines) == 6
    assert not [line for line in lines if KEY in line]
