"""Makes and checks the tables that syncer needs: the numbered SQL files under ``migrations/``.

There are two sets. ``state`` holds syncer's own tables, ``canonical`` the table of those who have
none yet, with its audit and change log. Each file is applied and recorded, with the SHA-256 of its
bytes, in one transaction; what was applied once is never applied again.
"""

from syncer.migrate.check import check, holds, lost, pending
from syncer.migrate.run import BUSY_TIMEOUT, Applied, apply, init_database

__all__ = [
    "BUSY_TIMEOUT",
    "Applied",
    "apply",
    "check",
    "holds",
    "init_database",
    "lost",
    "pending",
]
