"""Qdrant over REST and gRPC on loopback, over its own engine, with faults on command."""

from qdrant_http.app import MOST_BYTES, VERSION, Options
from qdrant_http.fault import Fault
from qdrant_http.faults import KINDS, Faults
from qdrant_http.program import Program, started
from qdrant_http.serving import Server, running
from qdrant_http.tls import Tls

__all__ = [
    "KINDS",
    "MOST_BYTES",
    "VERSION",
    "Fault",
    "Faults",
    "Options",
    "Program",
    "Server",
    "Tls",
    "running",
    "started",
]
