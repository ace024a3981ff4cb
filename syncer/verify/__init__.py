"""Whether both stores are equal: compared by key and hash, both ways, in bounded memory.

The position says nothing here but which rows are still to be looked at anyway.
"""

from syncer.result import Drift, VerifyResult
from syncer.verify.comparison import Comparison, Sampling, compared, verify
from syncer.verify.repair import mend, repair
from syncer.verify.scratch import Finding

__all__ = [
    "Comparison",
    "Drift",
    "Finding",
    "Sampling",
    "VerifyResult",
    "compared",
    "mend",
    "repair",
    "verify",
]
