"""Rule QT-05 where a process ends amid a write that preserves what others have put into a point."""

from __future__ import annotations

import pytest
from preserved import LONG, Interrupted, Place, die, own, without_times

pytestmark = pytest.mark.rule("QT-05")


def killed(place: Place, sql: str, batch: int, operations: int) -> None:
    """Let a sync of this change end in the midst of a batch."""
    place.execute(sql)
    with pytest.MonkeyPatch.context() as patch:
        die(place, patch, batch, operations)
        with pytest.raises(Interrupted):
            place.sync()


@pytest.mark.parametrize("operations", range(4))
def test_an_edit_that_is_killed_between_two_operations_is_done_again(
    place: Place, operations: int
) -> None:
    """Taken back, it must not look as if nothing had been written."""
    place.mark(1, 3)
    before = own(place.points())
    edit = "UPDATE memory_events SET content = content || '!' WHERE id IN (1, 3)"
    back = "UPDATE memory_events SET content = rtrim(content, '!')"
    killed(place, edit, 1, operations)
    place.execute(back)
    place.sync()
    assert without_times(place.points()) == without_times(before)
    killed(place, edit, 1, operations)
    place.sync()
    assert {place.points()[one][0]["document"] for one in (1, 3)} == {"one!", "three!"}
    place.execute(back)
    place.sync()
    assert without_times(place.points()) == without_times(before)
    assert place.marked() == {"1": [True], "2": [False] * 4, "3": [True]}


@pytest.mark.parametrize(("batch", "ends"), [(1, range(2)), (2, range(6)), (3, range(4))])
def test_of_a_long_text_no_vector_is_taken_for_that_of_another_text_after_a_kill(
    place: Place, batch: int, ends: range
) -> None:
    """The first batch opens the row, the second writes chunks 1 to 3, the last one chunk 0."""
    place.mark(2)
    before = own(place.points())
    edit, back = (
        f"UPDATE memory_events SET content = '{text}' WHERE id = 2" for text in (LONG.upper(), LONG)
    )
    for operations in ends:
        killed(place, edit, batch, operations)
        place.execute(back)
        place.sync()
        assert place.marked()["2"] == [True] * 4, operations
        assert without_times(place.points()) == without_times(before), operations
