"""The progress bar of a run: how far, how fast, and how long still."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Rate(ProgressColumn):
    """Rows a second."""

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing before there is one."""
        return Text(f"{task.speed:.0f} rows/s" if task.speed else "")


def progress_bar(*, no_colour: bool) -> Progress:
    """Return a bar on stderr that goes away when it is stopped."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, no_color=no_colour),
        transient=True,
    )
