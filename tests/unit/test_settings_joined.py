"""[[source.joined]]: what is taken, and how everything that is wrong in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_loading import DATABASE, given, problems

from syncer.settings import digest, load, mapping_digest

TAGS = {"name": "tags", "table": "memory_tags", "key": ["memory_id"], "value": "tag"}
FILE = """
[source]
database = "m.db"
key = ["a", "b"]
metadata = ["Agent"]
[[source.joined]]
name = "tags"
table = "memory_tags"
key = ["a", "b"]
value = ["tag", "weight"]
order = "weight DESC"
[[source.joined]]
name = "notes"
table = "notes"
key = ["x", "y"]
value = "upper(text)"
"""


def test_a_file_gives_several_lists_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "syncer.toml").write_text(FILE)
    first, second = load(tmp_path / "syncer.toml", environ={}).source.joined
    assert (first.name, first.table, first.key) == ("tags", "memory_tags", ("a", "b"))
    assert (first.value, first.order) == (("tag", "weight"), "weight DESC")
    assert (second.value, second.order) == ("upper(text)", None)


def test_a_variable_gives_them_as_json() -> None:
    text = '[{"name": "tags", "table": "memory_tags", "key": "memory_id", "value": "tag"}]'
    settings = load(None, environ={"SYNCER_SOURCE__JOINED": text}, options=DATABASE)
    assert settings == given(source__joined=[TAGS])


def test_an_empty_list_of_columns_or_none_at_all_is_told_from_one_column() -> None:
    (one,) = given(source__joined=[TAGS | {"value": ["tag"]}]).source.joined
    assert one.value == ("tag",)


def test_every_problem_in_every_entry_is_reported_at_once(tmp_path: Path) -> None:
    text = """
[source]
database = "m.db"
[[source.joined]]
name = "my tags"
tabel = "sk-very-secret"
key = 5
value = 7
[[source.joined]]
name = "SQLITE_ID"
table = ""
key = []
value = ["tag", "tag"]
"""
    file = tmp_path / "syncer.toml"
    assert problems(text, tmp_path) == [
        (
            f"source.joined[0].name = \"my tags\" ({file}): must be letters, digits, '_' or '-',"
            " starting with a letter or '_'"
        ),
        f"source.joined[0].table ({file}): is not set",
        f"source.joined[0].key = 5 ({file}): must be a list of texts",
        f"source.joined[0].value = 7 ({file}): must be text, or a list of texts",
        f"source.joined[0].tabel ({file}): is unknown; did you mean table?",
        (
            f'source.joined[1].name = "SQLITE_ID" ({file}): must not be "sqlite_id", which holds'
            " the key of the row"
        ),
        f'source.joined[1].table = "" ({file}): must not be empty',
        f"source.joined[1].key = [] ({file}): must name at least one column",
        f'source.joined[1].value = ["tag", "tag"] ({file}): must not name anything twice',
    ]


def test_what_does_not_fit_the_rest_of_the_section_is_named_by_entry() -> None:
    entries = [TAGS | {"name": "AGENT"}, TAGS | {"key": ["a", "b"]}, TAGS | {"name": "Tags"}]
    options = {"source.metadata": ["agent"], "source.joined": entries}
    where = "(option source.joined)"
    assert problems(options=DATABASE | options) == [
        (
            f'source.joined[0].name = "AGENT" {where}: must not be the name of a column in'
            " source.metadata"
        ),
        (
            f'source.joined[1].key = ["a", "b"] {where}: must name as many columns as source.key,'
            " which has 1"
        ),
        f'source.joined[2].name = "Tags" {where}: must not be the name of source.joined[1]',
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"name": "tags"}, 'source.joined = "(a table)" (option source.joined): must be a list of'),
        (["tags"], 'source.joined[0] = "tags" (option source.joined): must be a table with name,'),
    ],
)
def test_another_kind_of_value_is_refused(value: object, expected: str) -> None:
    (line,) = problems(options=DATABASE | {"source.joined": value})
    assert line.startswith(expected)


def test_text_that_is_no_json_is_refused() -> None:
    (line,) = problems(environ={"SYNCER_SOURCE__JOINED": "[{"}, options=DATABASE)
    assert line.endswith("must be a list of tables")


def test_lists_belong_to_the_mapping_and_their_order_does_not() -> None:
    first, second = TAGS, TAGS | {"name": "b"}
    some, turned = given(source__joined=[first, second]), given(source__joined=[second, first])
    assert mapping_digest(some) == mapping_digest(turned)
    assert digest(some) == digest(turned)
    for change in ({"value": ["tag"]}, {"order": "tag DESC"}, {"table": "t"}, {"key": ["k"]}):
        other = given(source__joined=[first, second | change])
        assert mapping_digest(other) != mapping_digest(some)
        assert digest(other) != digest(some)
