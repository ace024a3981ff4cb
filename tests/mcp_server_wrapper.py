"""Starts the official mcp-server-qdrant with a model from a local folder.

The server has no setting for that. Runs in the server's own environment; MODEL_FOLDER names the
folder.
"""

from __future__ import annotations

import os
from functools import partialmethod

from fastembed import TextEmbedding

TextEmbedding.__init__ = partialmethod(  # type: ignore[method-assign,assignment]
    TextEmbedding.__init__, specific_model_path=os.environ["MODEL_FOLDER"]
)

if __name__ == "__main__":
    from mcp_server_qdrant.main import main  # type: ignore[import-not-found]

    main()
