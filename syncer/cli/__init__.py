"""The command line: the composition root, and the only place that reads the environment."""

from syncer.cli.entry import main

__all__ = ["main"]
