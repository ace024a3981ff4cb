"""Reading a CREATE INDEX as SQLite keeps it."""

from __future__ import annotations

import pytest

from syncer.changelog.indexes import split


@pytest.mark.parametrize(
    ("sql", "terms", "where"),
    [
        ("CREATE UNIQUE INDEX i ON t (a)", ["a"], None),
        ("CREATE UNIQUE INDEX i ON t(a,b DESC,c ASC)", ["a", "b", "c"], None),
        (
            'CREATE UNIQUE INDEX "i ((" ON "t," ("a,)" desc, [b)], `c(`)',
            ['"a,)"', "[b)]", "`c(`"],
            None,
        ),
        ("CREATE UNIQUE INDEX i ON t (f(a, ')'), (b))", ["f(a, ')')", "(b)"], None),
        ("CREATE UNIQUE INDEX i ON t ((a || b), c)", ["(a || b)", "c"], None),
        (
            "CREATE UNIQUE INDEX i ON t (a COLLATE NOCASE DESC, lower(b) collate rtrim)",
            ["a COLLATE NOCASE", "lower(b) collate rtrim"],
            None,
        ),
        (
            "CREATE UNIQUE INDEX i ON t (a -- one, (two\n, /* ) */ b) /* x */ where a > 'where (' ",
            ["a", "b"],
            "a > 'where ('",
        ),
        ("CREATE UNIQUE INDEX i ON t (a)WHERE(b) -- end", ["a"], "(b)"),
        ("CREATE UNIQUE INDEX i ON t (a) WHERE b = 'it''s' AND (c)", ["a"], "b = 'it''s' AND (c)"),
    ],
)
def test_terms_and_condition_are_found_whatever_stands_around_them(
    sql: str, terms: list[str], where: str | None
) -> None:
    assert split(sql) == (terms, where)
