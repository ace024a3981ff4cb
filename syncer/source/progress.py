"""How far a stamped source has got beyond the settled instant: what ``Position.cursor`` holds."""

from __future__ import annotations

import json
from dataclasses import dataclass

from syncer.keys import canonical_json, decode_key, encode_key
from syncer.source.candidates import Place


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest stamp that was in the table when a pass began at the clock's `noted`.

    Once a pass begins a look-back later, nothing can still come in below it.
    """

    instant: int
    noted: int


@dataclass(frozen=True, slots=True)
class Pass:
    """A reading of all candidates that began at the clock's `began` and is not at its end.

    `newest` is the newest stamp then that was not in the future, `left` how many of the rows that
    there were are still to come, `place` the last one read. `by_index` says in which order: by the
    change column's index, or by key.
    """

    began: int
    newest: int | None
    left: int
    place: Place | None = None
    by_index: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """What is kept between windows; `read` is the newest stamp of the last pass that ended."""

    mark: Mark | None = None
    read: int | None = None
    under_way: Pass | None = None

    def as_text(self, settled: int | None = None) -> str | None:
        """Return canonical JSON, or None if there is nothing to keep beyond what is `settled`."""
        parts: dict[str, object] = {}
        if self.mark is not None:
            parts["mark"] = [self.mark.instant, self.mark.noted]
        if self.read is not None and (settled is None or self.read > settled):
            parts["read"] = self.read
        if (found := self.under_way) is not None:
            parts["pass"] = [found.began, found.newest, found.left, found.by_index]
            if found.place is not None:
                place = found.place
                parts["place"] = [place.range, encode_key((place.value, *place.key))]
        return canonical_json(parts) if parts else None


def progress_from(text: str | None) -> Progress:
    """Return the progress that ``Progress.as_text`` turned into `text`."""
    if text is None:
        return Progress()
    parts = json.loads(text)
    under_way = None
    if "pass" in parts:
        place = None
        if "place" in parts:
            number, encoded = parts["place"]
            value, *key = decode_key(encoded)
            place = Place(number, value, tuple(key))
        began, newest, left, by_index = parts["pass"]
        under_way = Pass(began, newest, left, place, by_index)
    mark = Mark(*parts["mark"]) if "mark" in parts else None
    return Progress(mark, parts.get("read"), under_way)
