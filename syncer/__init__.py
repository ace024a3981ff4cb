"""syncer keeps a Qdrant collection equal to a SQLite table."""

__version__ = "0.1.0"
