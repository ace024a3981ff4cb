"""The clock of the daemon: APScheduler's triggers, which do no more than say that it is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from syncer.errors import SettingsError

LATE = 5.0  # seconds after which a moment that was missed is told of


@dataclass(frozen=True, slots=True)
class Timer:
    """When something is due: every `interval` seconds, or by a `cron` line of five fields.

    `setting` is what to name if the line cannot be understood. Neither means never.
    """

    interval: float = 0.0
    cron: str | None = None
    setting: str = ""


class Schedule:
    """Calls `due` with a name, in a thread of its own, whenever that is due; `late` with how late.

    One moment that was missed, by a machine that slept for example, is made good once, however
    many there were. Raises SettingsError for a zone or a cron line that cannot be.
    """

    def __init__(
        self,
        timers: Mapping[str, Timer],
        due: Callable[[str], None],
        late: Callable[[str, float], None],
        zone: str = "UTC",
    ) -> None:
        self._due, self._late = due, late
        self._before: dict[str, float] = {}
        self._scheduler = BackgroundScheduler(
            timezone=_zone(zone),
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        for name, timer in timers.items():
            if (trigger := _trigger(timer, _zone(zone))) is not None:
                self._scheduler.add_job(self._call, trigger, args=[name], id=name)

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()
        self._note()

    def stop(self) -> None:
        """End; nothing is called any more. May be called again."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def next_runs(self) -> dict[str, float]:
        """Return when each is due next, in Unix seconds; without those that never are."""
        found = {job.id: job.next_run_time for job in self._scheduler.get_jobs()}
        return {name: at.timestamp() for name, at in found.items() if isinstance(at, datetime)}

    def _call(self, name: str) -> None:
        lateness = time.time() - self._before.get(name, time.time())
        self._note()
        if lateness > LATE:
            self._late(name, lateness)
        self._due(name)

    def _note(self) -> None:
        """Remember for when each is planned: the scheduler has moved on when it calls."""
        self._before = self.next_runs()


def _trigger(timer: Timer, zone: ZoneInfo) -> BaseTrigger | None:
    if timer.cron is not None:
        try:
            return CronTrigger.from_crontab(timer.cron, timezone=zone)
        except ValueError as error:
            raise SettingsError(
                f"{timer.setting} = {timer.cron!r} is no cron line: {error}",
                hint="Give five fields: minute, hour, day of month, month, day of week.",
            ) from error
    return IntervalTrigger(seconds=timer.interval, timezone=zone) if timer.interval else None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            f"daemon.timezone = {name!r} is not known here",
            hint='Give a name such as "Europe/Berlin", or leave it at "UTC".',
        ) from error
