"""What the settings say, as the adapters take it."""

from __future__ import annotations

from syncer.settings import Settings
from syncer.settings.base import CANONICAL_TABLE
from syncer.table import Joined, TableSpec


def table_spec(settings: Settings) -> TableSpec:
    """Return what the settings say about the table."""
    source = settings.source
    return TableSpec(
        table=source.table,
        key=source.key,
        content=source.content,
        metadata=source.metadata,
        json=source.json_columns,
        where=source.where,
        deleted=source.deleted,
        expires_at=source.expires_at,
        expiry_is_uniform=source.table == CANONICAL_TABLE,
        joined=tuple(
            Joined(one.name, one.table, one.key, one.value, one.order) for one in source.joined
        ),
    )
