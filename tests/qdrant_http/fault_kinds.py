"""All kinds of faults by their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from qdrant_http import fault_answers, fault_changes
from qdrant_http.exchange import Exchange
from qdrant_http.fault import Fault

Kind = Callable[[Fault, Exchange], Awaitable[None]]
KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        fault_answers.slow,
        fault_answers.closed_before,
        fault_answers.closed_during,
        fault_answers.closed_after,
        fault_answers.cut_upload,
        fault_answers.too_many,
        fault_answers.error,
        fault_answers.disk_full,
        fault_answers.not_qdrant,
        fault_answers.acknowledged,
        fault_answers.half_applied,
        fault_changes.unindexed,
        fault_changes.dropped,
        fault_changes.emptied,
        fault_changes.swapped,
        fault_changes.alias_moved,
        fault_changes.old_version,
        fault_changes.wrong_dimension,
        fault_changes.missing_vector,
        fault_changes.missing_modifier,
    )
}
