"""Settings: how the three layers become one, and how every problem is reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_loading import DATABASE, KEY, given, problems, refusal

from syncer.errors import SettingsError
from syncer.settings import find, load
from syncer.settings.sections import FIELDS

# Layers


def test_options_override_variables_and_variables_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "syncer.toml"
    file.write_text('[source]\ndatabase = "m.db"\ntable = "t1"\ncontent = "c1"\nwhere = "w1"')
    settings = load(
        file,
        environ={"SYNCER_SOURCE__CONTENT": "c2", "SYNCER_SOURCE__WHERE": "w2"},
        options={"source.where": "w3", "source.table": None},
    )
    source = settings.source
    assert (source.table, source.content, source.where) == ("t1", "c2", "w3")


def test_a_bad_value_that_is_overridden_is_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "syncer.toml"
    file.write_text('[source]\ndatabase = "m.db"\nbusy_timeout = -1')
    settings = load(file, environ={"SYNCER_SOURCE__BUSY_TIMEOUT": "5"})
    assert settings.source.busy_timeout == 5.0


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("SOURCE__METADATA", '["a, b", "c"]', ("a, b", "c")),
        ("SOURCE__METADATA", "a, b", ("a", "b")),
        ("SOURCE__METADATA", "", ()),
        ("SOURCE__KEY", "id", ("id",)),
        ("SOURCE__KEY", "a,b", ("a", "b")),
        ("TARGET__GRPC", "true", True),
        ("TARGET__GRPC", "1", True),
        ("TARGET__GRPC", "False", False),
        ("TARGET__GRPC", "0", False),
        ("TARGET__TIMEOUT", "2.5", 2.5),
        ("SYNC__WINDOW_ROWS", "20", 20),
        ("EMBED__THREADS", "2", 2),
        ("EMBED__THREADS", "", None),
        ("EMBED__PASSAGE_PREFIX", "passage: ", "passage: "),
        ("SOURCE__WHERE", "", None),
        ("LOG__FORMAT", "json", "json"),
    ],
)
def test_a_variable_s_text_becomes_what_the_setting_takes(
    variable: str, text: str, expected: object
) -> None:
    settings = load(None, environ={f"SYNCER_{variable}": text}, options=DATABASE)
    section, name = variable.lower().split("__")
    assert getattr(getattr(settings, section), name) == expected


def test_texts_in_the_file_are_not_taken_for_numbers_or_truths(tmp_path: Path) -> None:
    text = '[source]\ndatabase = "m.db"\n[sync]\nwindow_rows = "500"\n[target]\ngrpc = 1\n'
    lines = problems(text + "batch_points = true\ntimeout = true", tmp_path)
    file = tmp_path / "syncer.toml"
    assert lines == [
        f"target.grpc = 1 ({file}): must be true or false",
        f"target.timeout = true ({file}): must be a number from 0.1 to 3600",
        f"target.batch_points = true ({file}): must be a whole number from 1 to 10000",
        f'sync.window_rows = "500" ({file}): must be a whole number from 1 to 100000',
    ]


def test_the_variable_that_names_the_file_is_no_setting() -> None:
    assert load(None, environ={"SYNCER_CONFIG": "x.toml"}, options=DATABASE) == given()


# Paths


def test_paths_in_the_file_start_from_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "syncer.toml"
    file.write_text('[source]\ndatabase = "../m.db"\n[embed]\nmodel_path = "model"')
    settings = load(file, environ={})
    assert settings.source.database == tmp_path / ".." / "m.db"
    assert settings.embed.model_path == tmp_path / "model"


def test_a_file_named_relatively_gives_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "syncer.toml").write_text('[source]\ndatabase = "m.db"')
    settings = load(Path("conf/syncer.toml"), environ={})
    assert settings.source.database == tmp_path / "conf" / "m.db"


def test_paths_in_variables_and_options_start_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"SYNCER_SOURCE__DATABASE": "m.db"}
    settings = load(None, environ=environ, options={"target.path": Path("q")})
    assert settings.source.database == tmp_path / "m.db"
    assert settings.target.path == tmp_path / "q"


def test_a_tilde_is_the_home_directory(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "SYNCER_SOURCE__DATABASE": "~/m.db"}
    assert load(None, environ=environ).source.database == tmp_path / "m.db"
    line = refusal(source__database="~nobody-of-this-name/m.db")
    assert line.endswith("must name a home directory that exists")


def test_the_embedded_qdrant_lies_beside_the_database_unless_there_is_a_server() -> None:
    assert given().target.path == Path("/data/qdrant")
    assert given(target__path="/q").target.path == Path("/q")
    assert given(target__url="http://localhost:6333").target.path is None


def test_find_prefers_the_variable_then_the_folder_then_the_configuration_home(
    tmp_path: Path,
) -> None:
    cwd, home, xdg = tmp_path / "cwd", tmp_path / "home", tmp_path / "xdg"
    environ = {"HOME": str(home)}
    for folder in (cwd, home / ".config" / "syncer", xdg / "syncer"):
        folder.mkdir(parents=True)
    assert find(environ, cwd) is None
    for folder in (home / ".config" / "syncer", xdg / "syncer"):
        (folder / "syncer.toml").touch()
    assert find(environ, cwd) == home / ".config" / "syncer" / "syncer.toml"
    assert find(environ | {"XDG_CONFIG_HOME": str(xdg)}, cwd) == xdg / "syncer" / "syncer.toml"
    (cwd / "syncer.toml").touch()
    assert find(environ, cwd) == cwd / "syncer.toml"
    assert find(environ | {"SYNCER_CONFIG": "gone.toml"}, cwd) == cwd / "gone.toml"


# Problems


def test_every_problem_is_reported_at_once_with_its_place(tmp_path: Path) -> None:
    text = """
        [source]
        tabel = "t"
        busy_timeout = 3601
        key = [1]
        [sorce]
        database = "m.db"
        [target]
        url = "ftp://host"
        collection = "a+b"
    """
    environ = {"SYNCER_TARGET__GRPC": "yes", "SYNCER_SOURCE_TABLE": "t"}
    lines = problems(text, tmp_path, environ=environ, options={"embed.modle": 1, "log.level": "x"})
    file = tmp_path / "syncer.toml"
    rest = "'_', '-' or '.', starting with a letter, digit or '_' and not ending with '-'"
    assert lines == [
        f"source.tabel ({file}): is unknown; did you mean source.table?",
        f"sorce ({file}): is unknown; did you mean source?",
        "variable SYNCER_SOURCE_TABLE: is unknown; did you mean SYNCER_SOURCE__TABLE?",
        "embed.modle (option embed.modle): is unknown; did you mean embed.model?",
        "source.database: is not set; give it in syncer.toml or as SYNCER_SOURCE__DATABASE",
        f"source.key = [1] ({file}): must be a list of texts",
        f"source.busy_timeout = 3601 ({file}): must be a number from 0 to 3600",
        f'target.collection = "a+b" ({file}): must be 1 to 128 letters, digits, {rest}',
        f'target.url = "ftp://host" ({file}): must be like https://host:6333',
        'target.grpc = "yes" (variable SYNCER_TARGET__GRPC): must be true or false',
        'log.level = "x" (option log.level): must be one of "debug", "info", "warning", "error"',
    ]


@pytest.mark.parametrize("key", FIELDS)
def test_no_setting_takes_a_value_of_another_type(key: str) -> None:
    (line,) = problems(options=DATABASE | {key: {"a": KEY}})
    assert line.startswith(f"{key} = ")
    assert "must" in line
    assert KEY not in line


BOUNDED = [key for key, info in FIELDS.items() if any(hasattr(m, "ge") for m in info.metadata)]


@pytest.mark.parametrize("key", BOUNDED)
def test_a_bound_takes_its_ends_and_nothing_beyond(key: str) -> None:
    rules = FIELDS[key].metadata
    (low,) = [float(rule.ge) for rule in rules if hasattr(rule, "ge")]
    (high,) = [float(rule.le) for rule in rules if hasattr(rule, "le")]
    name = key.replace(".", "__")
    for end in (low, high):
        given(**{name: f"{end:g}" if end % 1 else str(int(end))})
    for beyond in (low - 1, high + 1, float("nan"), float("inf")):
        assert f"from {low:g} to {int(high)}" in refusal(**{name: beyond})


def test_the_bounds_are_the_ones_that_were_decided() -> None:
    assert len(BOUNDED) == 39
    assert "from 64 to 65536" in refusal(embed__token_budget=63)
    assert "from 65536 to 32505856" in refusal(target__batch_bytes=32505857)
    assert "from 65536 to 1073741824" in refusal(sync__window_bytes=1)
    assert "from 0 to 1" in refusal(sync__max_delete_share=1.5)
    assert "from 1024 to 1073741824" in refusal(source__max_content_bytes=1)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("source.databse", "source.database"),
        ("source.url", "target.url"),
        ("database", "source.database"),
        ("sorce.tabel", "source.table"),
        ("targets", "target"),
    ],
)
def test_an_unknown_key_is_answered_with_the_closest_one(wrong: str, right: str) -> None:
    (line,) = problems(options=DATABASE | {wrong: 1})
    assert line.endswith(f"is unknown; did you mean {right}?")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("SYNCER_SOURCE_DATABASE", "SYNCER_SOURCE__DATABASE"),
        ("SYNCER_EMBED__THREDS", "SYNCER_EMBED__THREADS"),
        ("SYNCER_URL", "SYNCER_TARGET__URL"),
        ("SYNCER_Target__Url", "SYNCER_TARGET__URL"),
        ("SYNCER_CONFG", "SYNCER_CONFIG"),
    ],
)
def test_an_unknown_variable_is_answered_with_the_closest_one(wrong: str, right: str) -> None:
    (line,) = problems(environ={wrong: KEY}, options=DATABASE)
    assert line == f"variable {wrong}: is unknown; did you mean {right}?"


def test_what_is_like_nothing_is_answered_with_what_there_is() -> None:
    environ = {"SYNCER_QQQ": "1", "SYNCER_LOG__QQQ": "1"}
    lines = problems(environ=environ, options=DATABASE | {"log.qqq": 1, "qqq.zzz": 1, "log": 1})
    answers = dict(line.split(": is unknown; there ") for line in lines)
    sections = ("SOURCE", "TARGET", "EMBED", "SPARSE", "SYNC", "LOG", "METRICS", "DAEMON")
    assert answers == {
        "variable SYNCER_LOG__QQQ": "is SYNCER_LOG__FORMAT, SYNCER_LOG__LEVEL",
        "variable SYNCER_QQQ": "is " + ", ".join(f"SYNCER_{name}__…" for name in sections),
        "log.qqq (option log.qqq)": "is log.{format, level}",
        "log (option log)": "is log.{format, level}",
        "qqq.zzz (option qqq.zzz)": (
            "are the sections source, target, embed, sparse, sync, log, metrics, daemon"
        ),
    }


def test_a_section_must_be_a_table(tmp_path: Path) -> None:
    lines = problems(f'source = "{KEY}"', tmp_path, options=DATABASE)
    assert lines == [f"source ({tmp_path / 'syncer.toml'}): must be a section, [source]"]


def test_broken_toml_names_file_and_line_and_hides_no_other_problem(tmp_path: Path) -> None:
    first, second = problems("[source]\ndatabase\n", tmp_path, environ={"SYNCER_LOG__LEVEL": "x"})
    assert first.startswith(f"{tmp_path / 'syncer.toml'}, line 2: not valid TOML: ")
    assert second.startswith('log.level = "x" (variable SYNCER_LOG__LEVEL): must be one of')


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("none.toml", "there is no such settings file; `syncer init` writes one"),
        ("folder", "the settings file cannot be read: Is a directory"),
        ("latin.toml", "the settings file is not UTF-8: byte 2"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, cause: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"# \xe4")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path / name, environ={})
    assert f"{tmp_path / name}: {cause}" in caught.value.message
    assert "source.database" not in caught.value.message


def test_a_problem_stays_one_line_whatever_the_value_is() -> None:
    line = refusal(target__collection="a\nb\x1b[31m" + "c" * 500)
    assert line.isprintable()
    assert len(line) < 300
    (line,) = problems(options=DATABASE | {"a\nb": 1})
    assert line.isprintable()
