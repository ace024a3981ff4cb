"""[daemon]: when ``syncer run`` does what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from syncer.settings.base import DAY, HOUR, OptionalText, Section


class DaemonSettings(Section):
    """[daemon]: when ``syncer run`` does what."""

    interval: float = Field(
        default=60.0, ge=1, le=DAY, description="Seconds between two looks at the source."
    )
    cron: OptionalText = Field(
        default=None, description="When to look, as a cron line of five fields, instead."
    )
    timezone: str = Field(default="UTC", description="Time zone of the cron lines.")
    wake: bool = Field(default=True, description="Sync as soon as somebody commits a change.")
    verify_interval: float = Field(
        default=DAY, ge=0, le=365 * DAY, description="Seconds between comparisons; 0 for none."
    )
    verify_cron: OptionalText = Field(
        default=None, description="When to compare both stores, as a cron line, instead."
    )
    repair: bool = Field(default=False, description="Mend what such a comparison finds.")
    prune_interval: float = Field(
        default=HOUR, ge=60, le=365 * DAY, description="Seconds between prunings of the logs."
    )
    on_recipe_change: Literal["refuse", "rebuild"] = Field(
        default="refuse", description="What to do if the settings ask for another recipe."
    )
    shutdown_timeout: float = Field(
        default=60.0, ge=1, le=85, description="Seconds for the window in flight at the end."
    )
