"""The settings file that ``syncer init`` leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

_EXAMPLE = """\
# Settings of syncer; docs/settings.md lists all of them. One file is one pipeline.
# SYNCER_SECTION__KEY variables override this file, options override both.
# A line that is commented out shows the default.

[source]
database = %s  # relative to this file
# table = "memory_events"
# key = "id"
# content = "content"       # a column, or an SQL expression
# where = ""                # an SQL expression; other rows stay out of the index

[target]
# collection = "memory"     # the name under which readers find it
# path = "qdrant"           # embedded Qdrant, for one process at a time; or a server:
# url = "http://localhost:6333"
# api_key_file = "qdrant.key"

[embed]
# model = "sentence-transformers/all-MiniLM-L6-v2"
# model_path = "model"      # a folder with the model's files, where no hub is reachable

[log]
# level = "info"
"""


def write_example(database: Path = Path("memory.db")) -> str:
    """Return a short, commented ``syncer.toml`` for `database` that loads as it is."""
    # A JSON string is a TOML string too.
    return _EXAMPLE % json.dumps(str(database), ensure_ascii=False)
