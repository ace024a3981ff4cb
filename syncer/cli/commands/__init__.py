"""The commands as Typer sees them: their options; what they do stands in ``syncer.cli``."""
