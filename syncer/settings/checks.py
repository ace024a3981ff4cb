"""What a single value must be like; each check returns the value or raises ValueError.

A message continues the sentence "target.url = … must …" and never repeats the value, which may
be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr

ROW_KEY = "sqlite_id"  # in every point's metadata
MAX_NAME = 128  # a generation adds 27 characters, and a file name has 255 at most

_COLLECTION = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_SURROGATE = re.compile("[\ud800-\udfff]")  # a byte that was not UTF-8, in a variable
_PAYLOAD_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_JOINED_NAME = re.compile(r"[^\W\d][\w-]*")
_URI = re.compile(r"(?:file|sqlite)[a-z0-9+]*:", re.IGNORECASE)
_UNSAFE_PARAMETER = re.compile(r"[?&](immutable|nolock)=(?:1|true|yes|on)\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"https?://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?(?:/[^\s?#@]*)?",
    re.IGNORECASE,
)
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]", re.IGNORECASE)
_MAX_PORT = 65_535


def absent_if_blank(value: object) -> object:
    """Return None for an empty text: the way to switch a default off."""
    return None if isinstance(value, str) and not value.strip() else value


def some_text(value: str) -> str:
    """Refuse a text that is blank, has a NUL or is not Unicode: SQLite takes none of these."""
    if not value.strip():
        raise ValueError("must not be empty")
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    if _SURROGATE.search(value):
        raise ValueError("must be UTF-8")
    return value


def tuple_from_list(value: object) -> object:
    """Return a list as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def tuple_from_text(value: object) -> object:
    """Return a text as a tuple of one, anything else as it is."""
    return (value,) if isinstance(value, str) else value


def some_columns(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty list of columns."""
    if not value:
        raise ValueError("must name at least one column")
    return value


def value_or_columns(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Refuse an empty text, and a list without names or with one twice."""
    return some_text(value) if isinstance(value, str) else some_columns(columns(value))


def joined_name(value: str) -> str:
    """Refuse keys that Qdrant would read as a path, and the one that holds the row's key."""
    if not _JOINED_NAME.fullmatch(value):
        raise ValueError("must be letters, digits, '_' or '-', starting with a letter or '_'")
    if value.lower() == ROW_KEY:
        raise ValueError(f'must not be "{ROW_KEY}", which holds the key of the row')
    return value


class EntriesError(ValueError):
    """What is wrong with entries of a list: number of the entry, name of the setting, and what."""

    def __init__(self, found: Sequence[tuple[int, str, str]]) -> None:
        super().__init__("; ".join(what for *_, what in found))
        self.found = tuple(found)


def columns(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that are blank or listed twice."""
    for name in value:
        some_text(name)
    if len(set(value)) < len(value):
        raise ValueError("must not name anything twice")
    return value


def path_from_text(value: object) -> object:
    """Return a text as a path; anything else as it is."""
    if not isinstance(value, str):
        return value
    some_text(_SURROGATE.sub("?", value))  # a file's name may be any bytes
    if value.startswith("~"):
        raise ValueError("must name a home directory that exists")
    return Path(value)


def looks_like_uri(text: str) -> bool:
    """Say whether `text` is a URI, or a path with the parameters of one."""
    return bool(_URI.match(text) or _UNSAFE_PARAMETER.search(text) or text == ":memory:")


def no_uri(value: object) -> object:
    """Refuse URIs: with ``immutable`` or ``nolock`` SQLite would miss what is in the WAL."""
    text = str(value) if isinstance(value, (str, Path)) else ""
    if unsafe := _UNSAFE_PARAMETER.search(text):
        raise ValueError(
            f"must not contain {unsafe[1].lower()}=1: rows that are still in the -wal file would"
            " be missed; give the file's path"
        )
    if looks_like_uri(text):
        raise ValueError("must be the path of a file, not a URI")
    return value


def collection_name(value: str) -> str:
    """Refuse what Qdrant, a file name or the names of generations cannot bear."""
    if "--" in value:
        raise ValueError('must not contain "--", which sets a generation apart from its name')
    if len(value) > MAX_NAME or not _COLLECTION.fullmatch(value):
        raise ValueError(
            f"must be 1 to {MAX_NAME} letters, digits, '_', '-' or '.', starting with a letter,"
            " digit or '_' and not ending with '-'"
        )
    return value


def payload_key(value: str) -> str:
    """Refuse keys that Qdrant would read as a path, and syncer's own."""
    if not _PAYLOAD_KEY.fullmatch(value):
        raise ValueError("must be letters, digits, '_' or '-', starting with a letter or '_'")
    if value == "_sync":
        raise ValueError('must not be "_sync", where syncer keeps its books')
    return value


def secret_from_text(text: str) -> SecretStr | None:
    """Return `text` without surrounding blanks, None if that is nothing.

    Raises ValueError for what no HTTP header can carry.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if not all("!" <= character <= "~" for character in stripped):
        raise ValueError("must be one line of visible ASCII characters without blanks")
    return SecretStr(stripped)


def listen_address(value: str) -> str:
    """Refuse what is not ``host:port``, with a host that is an address or a name."""
    match = _LISTEN.fullmatch(value)
    if not match or int(match["port"]) > _MAX_PORT:
        raise ValueError('must be like 127.0.0.1:9464 or [::1]:9464, or "" for no server')
    return value


def textfile_path(value: Path | None) -> Path | None:
    """Refuse names that node exporter passes over."""
    if value is not None and value.suffix != ".prom":
        raise ValueError("must end with .prom: node exporter reads no other files")
    return value


def web_address(value: str, key_file: str) -> str:
    """Refuse what is not ``http(s)://host[:port][/prefix]``; user, query and fragment too.

    `key_file` is the setting by which a key is given instead.
    """
    if "@" in value or "?" in value or "#" in value:
        raise ValueError(f"must not carry a user, a query or a fragment; use {key_file}")
    match = _ADDRESS.fullmatch(value)
    if not match or int(match["port"] or 1) not in range(1, _MAX_PORT + 1):
        raise ValueError("must be like https://host:6333")
    return value


def reaches_loopback(url: str) -> bool:
    """Say whether `url` stays on this machine, by its host's spelling alone."""
    match = _ADDRESS.fullmatch(url)
    return bool(match and _LOOPBACK.fullmatch(match["host"]))


def safe_for_keys(url: str, section: str, others: Mapping[str, object]) -> str:
    """Refuse an address to which the section's API key would go unencrypted."""
    has_key = others.get("api_key") or others.get("api_key_file")
    plain = url.lower().startswith("http:") and not reaches_loopback(url)
    if has_key and plain and not others.get("allow_insecure_key", True):
        raise ValueError(
            "would send the API key unencrypted; must be https, or a loopback address,"
            f" or {section}.allow_insecure_key must be true"
        )
    return url
