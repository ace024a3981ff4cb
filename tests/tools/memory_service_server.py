"""Starts mcp-memory-service, whose SQLite has to load an extension.

Where Python's own SQLite module cannot do that, another build of it takes its place. Runs in the
service's own environment.
"""

from __future__ import annotations

import sqlite3
import sys

if __name__ == "__main__":
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3  # type: ignore[import-not-found]

        sys.modules["sqlite3"] = pysqlite3
        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
    from mcp_memory_service.cli.main import main  # type: ignore[import-not-found]

    sys.argv[1:] = ["server"]
    main()
