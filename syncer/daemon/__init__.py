"""``syncer run``: when what is done, by schedule, by somebody's commit, and after a failure.

It knows what is to be done only by name; what it does is handed in.
"""

from syncer.daemon.loop import Failure, Loop, Task
from syncer.daemon.schedule import Schedule, Timer
from syncer.daemon.systemd import Notifier

__all__ = ["Failure", "Loop", "Notifier", "Schedule", "Task", "Timer"]
