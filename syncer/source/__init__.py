"""The source: one SQLite table, read in short transactions; nothing here is written or hashed."""

from syncer.source.append import AppendSource
from syncer.source.collector import Limits
from syncer.source.database import BUSY_SLICE, open_readonly
from syncer.source.feed import LogSource
from syncer.source.joined import JoinedLists
from syncer.source.order import key_order
from syncer.source.stamped import StampedSource, Stamps
from syncer.table import TableSpec

__all__ = [
    "BUSY_SLICE",
    "AppendSource",
    "JoinedLists",
    "Limits",
    "LogSource",
    "StampedSource",
    "Stamps",
    "TableSpec",
    "key_order",
    "open_readonly",
]
