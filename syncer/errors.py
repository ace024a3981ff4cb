"""What can go wrong, as one tree.

Each class knows its exit code and whether trying again makes sense; the docstring is the default
message. A message names the object, the cause and the next action::

    SyncerError                 1   a bug, or nothing better is known
    ├── SettingsError           2   usage or settings
    ├── RefusedError            4   an operator decides
    │   ├── IdentityError           the database or the collection is not the one that was left
    │   ├── RecipeError             the vectors in the collection were made in another way
    │   ├── SchemaError             tables, triggers or the collection are not as expected
    │   ├── StateError              syncer's own state cannot be read any more
    │   ├── DriftError              a generation is not equal to the source
    │   └── ShrunkError         9   a new generation is much smaller; to be confirmed
    ├── SourceError             5   the SQLite database
    │   └── SourceBusyError         ... is locked; may be tried again
    ├── TargetError             6   Qdrant
    │   ├── TargetUnavailableError  ... does not answer; may be tried again
    │   └── RejectedError           ... does not take what it was sent
    ├── EmbedderError           7   the model or the endpoint
    │   ├── EmbedderUnavailableError    ... does not answer; may be tried again
    │   └── EmbedderStuckError          ... is stuck in an inference that never ends
    └── LockedError             8   another instance holds the lock
        └── PositionMovedError      ... and moved the position meanwhile
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of every command, as the documentation lists them."""

    OK = 0
    BUG = 1
    USAGE = 2
    QUARANTINED = 3
    DRIFT = 3  # what `verify` finds
    REFUSED = 4
    SOURCE = 5
    TARGET = 6
    EMBEDDER = 7
    LOCKED = 8
    WITHHELD = 9
    TIMED_OUT = 10
    INTERRUPTED = 130
    TERMINATED = 143


class SyncerError(Exception):
    """Something went wrong inside syncer."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUG
    may_retry: ClassVar[bool] = False

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, retry_after: float = 0.0
    ) -> None:
        self.message = message or (type(self).__doc__ or "").splitlines()[0]
        self.hint = hint
        self.retry_after = retry_after  # seconds that the other side asks to wait
        self.was_tried = False  # as often as made sense, by whoever raised it
        super().__init__(self.message)

    def note_tries(self, tries: int, seconds: float) -> None:
        """Say in the message how often and how long it was tried; it is not tried again then."""
        self.was_tried = True
        self.message = f"{self.message} (tried {tries} times in {seconds:.0f} s)"

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class SettingsError(SyncerError):
    """The settings cannot be used."""

    exit_code = ExitCode.USAGE


class RefusedError(SyncerError):
    """syncer refuses to go on until an operator has decided."""

    exit_code = ExitCode.REFUSED


class IdentityError(RefusedError):
    """The database or the collection is not the one that was left behind."""


class RecipeError(RefusedError):
    """The vectors in the collection were made in another way than the settings ask for."""


class SchemaError(RefusedError):
    """Tables, triggers or the collection are not as they should be."""


class StateError(RefusedError):
    """syncer's own state is damaged."""


class DriftError(RefusedError):
    """A generation is not equal to the source, and could not be made so."""


class ShrunkError(RefusedError):
    """The new generation is much smaller than the one that serves."""

    exit_code = ExitCode.WITHHELD


class SourceError(SyncerError):
    """The SQLite database cannot be read."""

    exit_code = ExitCode.SOURCE


class SourceBusyError(SourceError):
    """The SQLite database is locked by another program."""

    may_retry = True


class TargetError(SyncerError):
    """Qdrant refused the request."""

    exit_code = ExitCode.TARGET


class TargetUnavailableError(TargetError):
    """Qdrant does not answer."""

    may_retry = True


class RejectedError(TargetError):
    """Qdrant does not take what it was sent."""

    too_large: bool = False
    """Whether it is too large, and nothing else is known to be wrong with it."""


class EmbedderError(SyncerError):
    """The embedding model cannot be used."""

    exit_code = ExitCode.EMBEDDER


class EmbedderUnavailableError(EmbedderError):
    """The embedding endpoint does not answer."""

    may_retry = True


class EmbedderStuckError(EmbedderError):
    """The embedding model is stuck, and its thread cannot be stopped."""


class LockedError(SyncerError):
    """Another instance holds the lock."""

    exit_code = ExitCode.LOCKED


class PositionMovedError(LockedError):
    """Another instance moved the position meanwhile."""
