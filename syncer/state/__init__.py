"""What syncer remembers: generations with their positions and tokens, and the quarantine.

The state is read by nobody but syncer; in ``log`` mode it lives in the source's database, so that
a restored backup takes it back too.
"""

from syncer.state.generation import GenerationState, utc_now
from syncer.state.records import Generation, QuarantineRecord, Verified, kept_ones
from syncer.state.store import StateStore

__all__ = [
    "Generation",
    "GenerationState",
    "QuarantineRecord",
    "StateStore",
    "Verified",
    "kept_ones",
    "utc_now",
]
