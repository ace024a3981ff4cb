"""Which rows and texts of which table; checked against the database before it is used."""

from syncer.table.check import (
    Columns,
    check_columns,
    check_table,
    is_reusable_key,
    json_columns,
    own_collations,
    reused_key_warning,
    with_all_columns,
)
from syncer.table.spec import Joined, TableSpec, is_name, quote

__all__ = [
    "Columns",
    "Joined",
    "TableSpec",
    "check_columns",
    "check_table",
    "is_name",
    "is_reusable_key",
    "json_columns",
    "own_collations",
    "quote",
    "reused_key_warning",
    "with_all_columns",
]
