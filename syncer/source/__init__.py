"""The source: one SQLite table, read in short transactions; nothing here is written or hashed."""

from syncer.source.database import BUSY_SLICE, open_readonly
from syncer.source.feed import Limits, LogSource
from syncer.table import TableSpec

__all__ = ["BUSY_SLICE", "Limits", "LogSource", "TableSpec", "open_readonly"]
