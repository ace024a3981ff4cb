"""The server as a program: ``python -m qdrant_http --folder F --port 0 --port-file P``.

It writes its port into the file when it listens, and behind it that for gRPC, if it has one.
SIGTERM lets it finish; a kill is part of what it is for.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack, closing
from pathlib import Path

import uvicorn

from qdrant_http import app
from qdrant_http.app import MOST_BYTES, VERSION, Options
from qdrant_http.collection import write
from qdrant_http.connections import Connections
from qdrant_http.faults import Faults, Faulty
from qdrant_http.rpc import serving
from qdrant_http.serving import bound, configured
from qdrant_http.tls import Tls


def main() -> None:
    """Serve until a signal comes."""
    given = _arguments()
    options = Options(
        folder=given.folder,
        api_key=os.environ.get("QDRANT_HTTP_API_KEY"),
        prefix=given.prefix,
        version=given.version,
        most_bytes=given.most_bytes,
    )
    tls = None
    if given.certificate is not None:
        tls = Tls(certificate=given.certificate, key=given.key, client_ca=given.client_ca)
    served, store = app.make(options)
    connections = Connections()
    faulty = Faulty(served, Faults(given.seed), connections, options.prefix)
    with ExitStack() as stack:
        stack.enter_context(closing(store))
        listening = stack.enter_context(closing(bound(given.port)))
        ports = [listening.getsockname()[1]]
        if given.grpc_port is not None:
            calls = serving(faulty, options.prefix, port=given.grpc_port, tls=tls)
            ports.append(stack.enter_context(calls).port)
        listening.listen()
        write(given.port_file, " ".join(map(str, ports)).encode())
        uvicorn.Server(configured(faulty, connections, tls)).run([listening])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="qdrant_http", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--grpc-port", type=int, help="speak gRPC too, there; 0 for any port")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--most-bytes", type=int, default=MOST_BYTES)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--client-ca", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="for faults that happen by chance")
    return parser.parse_args()


if __name__ == "__main__":
    main()
