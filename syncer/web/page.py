"""The status page: one HTML document, made from a value alone, that asks nobody for anything."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from syncer.web.charts import bars, round_duration, round_number
from syncer.web.status import StatusPage, in_words
from syncer.web.words import ago, ahead, clock_time, duration, number

_STYLE = files("syncer.web").joinpath("style.css").read_text(encoding="utf-8")
STYLE_HASH = f"sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}"
"""What a content security policy has to allow so that the page's own style counts."""

_REFRESH = 30  # seconds


def render(page: StatusPage) -> str:
    """Return the page as HTML. Every word that comes from outside is escaped."""
    mood, sentence = in_words(page)
    doing = f"{page.doing[:1].upper()}{page.doing[1:]}. " if page.doing else ""
    body = [
        f"<header><h1>{escape(page.name)}</h1><span>syncer {escape(page.version)}</span></header>",
        _state(mood.value, sentence, f"{doing}{_last(page)}"),
        _figures(page),
        f'<div class="pair">{_lag_chart(page)}{_rows_chart(page)}</div>',
        f'<div class="pair">{_generations(page)}{_quarantine(page)}</div>',
        f'<div class="pair">{_verify(page)}{_next(page)}</div>',
        f"<footer>As of {escape(clock_time(page.now))}; loads again every {_REFRESH} s.</footer>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="refresh" content="{_REFRESH}">'
        '<link rel="icon" href="data:,">'  # or browsers would ask for one
        f"<title>{escape(_title(page.name, sentence))}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>"
    )


def _state(mood: str, sentence: str, more: str) -> str:
    return (
        f'<section class="state {mood}"><p>{escape(sentence)}</p>'
        f"<small>{escape(more)}</small></section>"
    )


def _title(name: str, sentence: str) -> str:
    return f"{sentence} · {name}"


def _last(page: StatusPage) -> str:
    """Say when a run last succeeded, and when one last ended if that is another matter."""
    runs = page.runs
    known = runs.last_success if runs.last_success is not None else page.facts.last_success
    words = f"Last success {ago(known, page.now)}"
    if runs.last_run is not None and runs.last_run != runs.last_success:
        words += f", last run {ago(runs.last_run, page.now)}"
    return words


def _figures(page: StatusPage) -> str:
    facts = page.facts
    age = "–" if facts.lag_seconds is None else duration(facts.lag_seconds)  # noqa: RUF001
    quarantined = None if facts.quarantined is None else sum(facts.quarantined.values())
    figures = [
        ("Rows behind", number(facts.lag_rows)),
        ("Oldest change", age),
        ("In quarantine", number(quarantined)),
        ("Deletes withheld", number(facts.withheld)),
    ]
    if facts.rebuild_progress is not None:
        figures.append(("Rebuild", f"{facts.rebuild_progress:.0%}"))
    cells = (f"<section><h2>{name}</h2><b>{escape(value)}</b></section>" for name, value in figures)
    return f'<div class="figures">{"".join(cells)}</div>'


def _lag_chart(page: StatusPage) -> str:
    lags = [None if minute is None else minute.lag for minute in page.minutes]
    return _chart("Lag, last hour", lags, duration, round_duration)


def _rows_chart(page: StatusPage) -> str:
    rows = [None if minute is None else float(minute.rows) for minute in page.minutes]
    return _chart("Rows per minute, last hour", rows, lambda value: f"{value:,.0f}", round_number)


def _chart(
    title: str,
    values: Sequence[float | None],
    write: Callable[[float], str],
    rounded: Callable[[float], float],
) -> str:
    """Return a chart with its scale: what its top stands for, and where it begins and ends."""
    known = [value for value in values if value is not None]
    if not known:
        return f'<section><h2>{title}</h2><p class="none">nothing noted yet</p></section>'
    top = rounded(max(known))
    label = f"{title}: at most {write(max(known))}, now {write(known[-1])}"
    return (
        f'<section><h2>{title}</h2><div class="top">{escape(write(top))}</div>'
        f"{bars(values, top, label, write)}"
        '<div class="axis"><span>1 h ago</span><span>now</span></div></section>'
    )


def _generations(page: StatusPage) -> str:
    rows = (
        f"<tr><th>{escape(one.name)}<small>{escape(one.phase)}, {number(one.rows)} rows</small>"
        "</th></tr>"
        for one in page.facts.generations
    )
    return _table("Generations", rows, known=page.facts.lag_rows is not None)


def _quarantine(page: StatusPage) -> str:
    found = sorted((page.facts.quarantined or {}).items(), key=lambda item: (-item[1], item[0]))
    rows = _pairs((_plain(reason), number(count)) for reason, count in found)
    return _table("Quarantine", rows, known=page.facts.quarantined is not None)


def _verify(page: StatusPage) -> str:
    drift = page.facts.drift or {}
    pairs = [("Last verify", ago(page.facts.last_verify, page.now))]
    pairs += [(f"{_plain(kind).capitalize()} points", number(drift[kind])) for kind in drift]
    return _table("Verify", _pairs(pairs))


def _next(page: StatusPage) -> str:
    runs = sorted(page.next_runs, key=lambda run: run.at)
    return _table("Next runs", _pairs((run.what, ahead(run.at, page.now)) for run in runs))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in pairs)


def _table(title: str, rows: Iterable[str], *, known: bool = True) -> str:
    body = "".join(rows)
    nothing = f'<p class="none">{"none" if known else "not known"}</p>'
    return f"<section><h2>{title}</h2>{f'<table>{body}</table>' if body else nothing}</section>"


def _plain(word: str) -> str:
    return word.replace("_", " ")
