"""What a model returns is checked before anybody stores it."""

from __future__ import annotations

import numpy as np
import pytest

from syncer.embed.checks import as_rows, as_vectors
from syncer.errors import EmbedderError

GOOD = np.array([0.6, 0.8], dtype=np.float32)


@pytest.mark.parametrize("returned", [1, 3])
def test_fewer_or_more_vectors_than_texts_are_refused(returned: int) -> None:
    with pytest.raises(EmbedderError, match=f"m returned {returned} vectors for 2 texts"):
        as_rows([GOOD] * returned, count=2, dimension=2, model="m")


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_vector_of_another_dimension_is_refused(size: int) -> None:
    with pytest.raises(EmbedderError, match=rf"shape \({size},\), where 2 numbers"):
        as_rows([GOOD, np.ones(size)], count=2, dimension=2, model="m")


@pytest.mark.parametrize(
    "bad", [[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0], [0.0, 0.0], [1e-9, 0.0]]
)
def test_a_vector_without_a_direction_comes_back_empty_and_the_others_whole(
    bad: list[float],
) -> None:
    rows = as_rows([GOOD, np.array(bad)], count=2, dimension=2, model="m")
    first, second, third = as_vectors(rows, [0, 1, 0])
    assert list(first) == list(third) == pytest.approx([0.6, 0.8])
    assert len(second) == 0


def test_no_texts_give_no_vectors() -> None:
    assert as_vectors(as_rows([], count=0, dimension=2, model="m"), []) == []
