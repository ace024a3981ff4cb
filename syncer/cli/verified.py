"""What a comparison of both stores found, for people and for programs; never a row's text."""

from __future__ import annotations

from syncer.result import Drift, Sample, VerifyResult

_MOST = 5  # rows that are named

_MEANS = {
    Drift.MISSING: "rows that the collection does not have",
    Drift.STALE: "rows with another content or metadata",
    Drift.ORPHAN: "rows that the table does not have",
    Drift.INCOMPLETE: "rows with a chunk too few or too many",
    Drift.NO_VECTOR: "rows without one of their vectors",
    Drift.WRONG_VECTOR: "rows whose vector is not that of their text",
    Drift.FOREIGN: "points that syncer did not write",
}


def in_words(result: VerifyResult) -> str:
    """Return the result as lines for people."""
    verdict = "equal" if result.clean else f"{result.drifted} differ"
    looked_at = f"{result.rows} rows and {result.points} points compared"
    lines = [f"{looked_at}: {verdict} ({result.seconds:.1f} s)"]
    lines += [
        _line(kind.value.replace("_", " "), found, _MEANS[kind])
        for kind in Drift
        if (found := result.drift.get(kind))
    ]
    for name, found, means in (
        ("pending", result.pending, "rows with changes that are not synced yet"),
        ("quarantined", result.quarantined, "rows that cannot be indexed"),
        ("withheld", result.withheld, "rows whose deletion is withheld"),
    ):
        if found:
            lines.append(_line(name, found, f"{means}; no drift"))
    if result.sampled:
        lines.append(f"{result.sampled} rows were embedded again")
    return "\n".join(lines)


def as_dict(result: VerifyResult) -> dict[str, object]:
    """Return the result for JSON, with some rows of each kind by their keys."""
    from syncer import telemetry

    named = {kind.value: list(found) for kind, found in result.drift.items()}
    apart = {
        "pending": list(result.pending),
        "quarantined": list(result.quarantined),
        "withheld": list(result.withheld),
    }
    counts = telemetry.verify_counts(result)
    return {"generation": result.generation, **counts, "named": {**named, **apart}}


def _line(name: str, found: Sample[str], means: str) -> str:
    more = ", …" if len(found) > _MOST else ""
    some = ", ".join(found.first[:_MOST]) + more
    return f"  {name:<13}{len(found):>8}  {means}: {some}"
