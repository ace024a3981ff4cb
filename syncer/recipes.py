"""Whether two recipes make the same vectors, and where they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from syncer.errors import RecipeError
from syncer.keys import canonical_json
from syncer.model import Recipe
from syncer.text import digest

_CANARY_AGREES = 0.999  # cosine; the same model in another batch or on another CPU stays above
_READABLE = 80  # characters of a value as JSON
_MEASURED = frozenset({"sparse.avg_len"})


def check_recipe(generation: str, found: Recipe, wanted: Recipe) -> None:
    """Raise RecipeError, both sides shown, unless the two make the same vectors."""
    found_differences = differences(found, wanted)
    if found_differences:
        raise RecipeError(
            f"{generation} was made by another recipe than the settings ask for: "
            + "; ".join(found_differences),
            hint="Put the settings, or the library's version, back, or run `syncer rebuild`: it "
            "makes a new generation by what there is now, while this one goes on serving.",
        )


def check_same(generation: str, found: Recipe, loaded: Recipe) -> None:
    """Raise RecipeError unless what was loaded for a recipe still makes its vectors."""
    if wrong := differences(found, loaded):
        raise RecipeError(
            f"{generation} cannot be asked: what it was made with is not here any more: "
            + "; ".join(wrong),
            hint="Put the model's files and the library's version back, or run `syncer rebuild`: "
            "it makes a new generation by what is here.",
        )


def differences(found: Recipe, wanted: Recipe) -> list[str]:
    """Return where two recipes differ, each as one readable phrase."""
    left, right = _flat(found, wanted), _flat(wanted, found)
    differences = [
        f"{name} was {_shown(left.get(name))}, now {_shown(right.get(name))}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name) and not _is_unmeasured(name, left, right)
    ]
    if not differences and not canary_agrees(found, wanted):
        cosine = _cosine(found.canary, wanted.canary)
        differences.append(f"the same sentence now has another vector (cosine {cosine:.4f})")
    return differences


def _shown(value: str | None) -> str:
    """Return a value for a message; of one that nobody could read, a hash."""
    if value is None:
        return "absent"
    return value if len(value) <= _READABLE else f"of hash {digest(value)}"


def _flat(recipe: Recipe, other: Recipe) -> dict[str, str]:
    """Return a recipe's values by name; a part that `other` does not have at all is one of them."""
    flat: dict[str, str] = {}
    others = asdict(other)
    for part, values in asdict(recipe).items():
        if part == "canary" or values == {}:
            continue
        if isinstance(values, dict) and not others[part]:
            flat[part] = "there"
        elif isinstance(values, dict):
            flat |= _named(part, values)
        else:
            flat[part] = canonical_json(values)
    return flat


def _named(prefix: str, values: Mapping[str, object]) -> dict[str, str]:
    """Return values by dotted name, those of a mapping inside one by one."""
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _named(f"{prefix}.{name}", value)
        else:
            flat[f"{prefix}.{name}"] = canonical_json(value)
    return flat


def _is_unmeasured(name: str, left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Say whether one side has yet to measure this, which is done when a generation is made."""
    return name in _MEASURED and "null" in (left.get(name), right.get(name))


def canary_agrees(one: Recipe, other: Recipe) -> bool:
    """Say whether two recipes put the canary sentence at the same place."""
    return _cosine(one.canary, other.canary) >= _CANARY_AGREES


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine; 0 for vectors of different size, 1 where neither recipe has a canary."""
    if len(left) != len(right):
        return 0.0
    norms = math.hypot(*left) * math.hypot(*right)
    if not norms:
        return 0.0 if left else 1.0
    return sum(a * b for a, b in zip(left, right, strict=True)) / norms
