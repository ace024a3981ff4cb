"""Where a database lies: SQLite's locks and shared memory do not work on every file system."""

from __future__ import annotations

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "ceph", "gluster", "lustre", "vboxsf")


def shared_mount(path: Path, mounts: Path = _MOUNTS) -> tuple[str, str] | None:
    """Return mount point and type if `path` lies on a network or shared file system.

    By Linux's mountinfo; None where there is none.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = path.resolve()
    found = ("", "")
    for line in lines:
        before, _, after = line.partition(" - ")
        if not after:
            continue
        point = before.split()[4].replace("\\040", " ")
        if place.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, after.split()[0])
    return found if found[1].startswith(_SHARED) else None


def warning(path: Path, mounts: Path = _MOUNTS) -> list[str]:
    """Return why a database at `path` is at risk, if it is."""
    mount = shared_mount(path, mounts)
    if mount is None:
        return []
    point, kind = mount
    found = (
        f"{path} lies on {point}, a file system of type {kind}: SQLite's locks may not hold there, "
        "and a write-ahead log needs memory that all its users share. Keep it on a local disk."
    )
    return [found]
