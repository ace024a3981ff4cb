"""Files that are seen whole or not at all, whoever reads or dies meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def put(target: Path, content: bytes) -> None:
    """Replace `target` by a file with this content, which other users may read, too.

    Raises OSError if that cannot be done; then the old file is still there.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
