"""Settings: a file, ``SYNCER_…`` variables and options in, one frozen ``Settings`` out.

Layered by hand on plain pydantic models, not with pydantic-settings: its import takes 50 ms of an
idle run's 300, and it reads the process's own environment, stops at the first value that it cannot
parse, passes over unknown variables, and does not tell where a value came from.
"""

from __future__ import annotations

from syncer.settings.digests import digest, mapping_digest
from syncer.settings.embedding import EmbedSettings, SparseSettings
from syncer.settings.example import write_example
from syncer.settings.layers import CONFIG_VARIABLE
from syncer.settings.loading import find, load
from syncer.settings.metrics import MetricsSettings
from syncer.settings.sections import (
    LogSettings,
    Settings,
    SourceSettings,
    SyncSettings,
)
from syncer.settings.target import TargetSettings

__all__ = [
    "CONFIG_VARIABLE",
    "EmbedSettings",
    "LogSettings",
    "MetricsSettings",
    "Settings",
    "SourceSettings",
    "SparseSettings",
    "SyncSettings",
    "TargetSettings",
    "digest",
    "find",
    "load",
    "mapping_digest",
    "write_example",
]
