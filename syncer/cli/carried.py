"""What others have put into a generation's points goes over to the one that takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncer.errors import RefusedError

if TYPE_CHECKING:
    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.keys import PointId


def carry_foreign(found: Ready, report: Report, origin: str, heir: str) -> bool:
    """Let foreign payload keys go over from `origin`; return False if a stop was asked for first.

    An origin that is not there any more has none. May be repeated.
    """
    from syncer.target import Catalog, ForeignPayload

    if not found.retry(Catalog(found.connection).exists, origin):
        return True
    report.say(f"carrying over what others have put into the points of {origin}")
    payload = ForeignPayload(found.connection, origin, heir)
    offset: PointId | None = None
    try:
        while not found.stop.asked:
            offset = found.retry(payload.carry, offset)
            if offset is None:
                return True
    except RefusedError as error:  # somebody has changed it: what of it is whose cannot be known
        report.warn(f"nothing more of others' payload keys is taken over: {error.message}")
        return True
    return False
