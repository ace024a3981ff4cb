"""The target: Qdrant, as a server by URL or as the client's embedded local mode by path."""

from syncer.target.collection import Catalog, generation_name, is_generation_of
from syncer.target.connection import Connection, TargetSpec, connect
from syncer.target.creation import Creation
from syncer.target.foreign import ForeignPoints
from syncer.target.foreign_payload import ForeignPayload
from syncer.target.null import NullTarget
from syncer.target.plain import Plain
from syncer.target.points import GenerationTarget
from syncer.target.query import query
from syncer.target.succession import Succession
from syncer.target.vectors import StoredPoints

__all__ = [
    "Catalog",
    "Connection",
    "Creation",
    "ForeignPayload",
    "ForeignPoints",
    "GenerationTarget",
    "NullTarget",
    "Plain",
    "StoredPoints",
    "Succession",
    "TargetSpec",
    "connect",
    "generation_name",
    "is_generation_of",
    "query",
]
