"""The change log of a table that syncer did not make: its triggers as SQL, put in and taken out."""

from syncer.changelog.install import (
    attach,
    attach_evictions,
    attach_joined,
    attaching,
    detaching,
    evictions,
    find_eviction_faults,
    find_faults,
    find_joined_faults,
    is_log,
    plan,
)
from syncer.changelog.statements import Statement

__all__ = [
    "Statement",
    "attach",
    "attach_evictions",
    "attach_joined",
    "attaching",
    "detaching",
    "evictions",
    "find_eviction_faults",
    "find_faults",
    "find_joined_faults",
    "is_log",
    "plan",
]
