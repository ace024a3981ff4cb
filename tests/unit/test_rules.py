"""Every rule of a family that is built has a test that carries its id."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MARKED = re.compile(r'rule\("([A-Z]{2}-\d\d)"\)')
NAMED = re.compile(r"def test_([a-z]{2})_(\d\d)_")

SOURCE_READING = [f"SR-{number:02}" for number in range(1, 20) if number != 15]
CHANGE_TRACKING = [
    *(f"CT-{number:02}" for number in range(1, 24) if number not in (6, 13)),
]
EMBEDDING = [f"EM-{number:02}" for number in range(1, 17)]
CHUNKING = [f"CS-{number:02}" for number in range(1, 13) if number not in (4, 6, 11)]
TARGET = [*(f"QT-{number:02}" for number in range(1, 25) if number != 21), "SE-05"]
REBUILD = [f"RB-{number:02}" for number in range(1, 11)]
SCHEDULING = [f"SC-{number:02}" for number in range(1, 9) if number != 4]
OPERATIONS = [f"OP-{number:02}" for number in range(1, 7) if number != 5]
SECURITY = [f"SE-{number:02}" for number in range(1, 8) if number != 4]


def carried() -> set[str]:
    """Return the ids that tests carry, by a mark or in their names."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            found |= set(MARKED.findall(text))
            found |= {f"{family.upper()}-{number}" for family, number in NAMED.findall(text)}
    return found


@pytest.mark.parametrize(
    "rule",
    SOURCE_READING
    + CHANGE_TRACKING
    + EMBEDDING
    + CHUNKING
    + TARGET
    + REBUILD
    + SCHEDULING
    + OPERATIONS
    + SECURITY,
)
def test_a_rule_is_held_by_a_test(rule: str) -> None:
    assert rule in carried()
