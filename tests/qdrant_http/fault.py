"""What a fault is, and which requests it can happen to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens, to which requests, and how often.

    `method` and `path` are patterns as in ``fnmatch``; the path is without the server's prefix.
    A kind that makes no sense for a request, an acknowledged read say, does not fit it. The first
    `skip` requests that fit are spared; then it happens `times` times (None: for ever), to each
    with `probability`. The rest is read by the kinds that name it.
    """

    kind: str
    method: str = "*"
    path: str = "*"
    times: int | None = 1
    skip: int = 0
    probability: float = 1.0
    seconds: float = 1.0
    """slow: how long; too_many: when to come again."""
    status: int = 500
    """error: which."""
    form: Literal["json", "html", "date", "none"] = "json"
    """error: of the body; too_many: `date`, of the header, or `none`, without it."""
    applied: bool = False
    """slow, error, too_many, acknowledged: whether the request is carried out before."""
    size: int = 32 * 2**20
    """cut_upload: after how many bytes."""
    target: str = ""
    """alias_moved: the collection that the aliases point at afterwards."""
    said: str = ""
    """error: other words."""

    def fits(self, method: str, path: str) -> bool:
        """Say whether it can happen to a request."""
        asked = fnmatchcase(method, self.method) and fnmatchcase(path, self.path)
        return asked and _FITTING.get(self.kind, _always)(method, path)


_READ_BY_POST = ("/points", "/scroll", "/count", "/query", "/query/batch", "/query/groups")


def _always(_method: str, _path: str) -> bool:
    return True


def _is_change(method: str, path: str) -> bool:
    return method != "GET" and not (method == "POST" and path.endswith(_READ_BY_POST))


def _is_write(method: str, path: str) -> bool:
    return "/points" in path and _is_change(method, path)


def _carries_several(method: str, path: str) -> bool:
    several = path.endswith(("/points", "/points/batch", "/points/delete"))
    return several and _is_write(method, path)


def _names_collection(_method: str, path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 2 and parts[1] == "collections" and parts[2] != "aliases"


def _asks_collection(method: str, path: str) -> bool:
    return method == "GET" and path.count("/") == 2 and _names_collection(method, path)


_FITTING: dict[str, Callable[[str, str], bool]] = {
    "disk_full": _is_change,
    "acknowledged": _is_write,
    "half_applied": _carries_several,
    "old_version": lambda method, path: (method, path) == ("GET", "/"),
    **dict.fromkeys(("unindexed", "dropped", "emptied", "swapped"), _names_collection),
    **dict.fromkeys(("wrong_dimension", "missing_vector", "missing_modifier"), _asks_collection),
}
