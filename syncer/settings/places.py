"""Where files of syncer's own lie, if nobody says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

_DIGITS = 8  # of a path's hash; enough to keep databases of one name apart


def default_state(database: Path, environ: Mapping[str, str]) -> Path:
    """Return where the state goes that does not live in the database itself.

    Beside the database, if it is there already or the folder can be written to; else in
    ``syncer`` below ``$XDG_STATE_HOME`` (by default ``~/.local/state``), under a name of its own
    for each database.
    """
    real = database.resolve()
    beside = real.with_name(f"{real.name}.syncer.db")
    effective = os.access in os.supports_effective_ids
    if beside.exists() or os.access(real.parent, os.W_OK, effective_ids=effective):
        return beside
    digits = hashlib.sha256(os.fsencode(real)).hexdigest()[:_DIGITS]
    return _state_home(environ) / "syncer" / f"{real.name}-{digits}.syncer.db"


def _state_home(environ: Mapping[str, str]) -> Path:
    configured = Path(environ.get("XDG_STATE_HOME", ""))
    if configured.is_absolute():
        return configured
    return Path(environ.get("HOME") or "~").expanduser() / ".local" / "state"
