"""How gRPC connects: whom it trusts, how soon it tries again, and what it asks twice."""

from __future__ import annotations

import json
from pathlib import Path

Certificates = tuple[Path | None, Path | None, Path | None]
"""Whom to trust, who we are, and the key to that, in PEM; see ``transport.trust``."""

_LONGEST_WAIT = 2_000  # milliseconds between attempts to connect; of itself it goes to two minutes
_ONCE_MORE = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 2,
                "initialBackoff": "0.1s",
                "maxBackoff": "0.1s",
                "backoffMultiplier": 1,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def options(certificates: Certificates, most_bytes: int) -> dict[str, object]:
    """Return the options of the client's channels; requests have about `most_bytes`.

    A call whose connection is lost is made once more, on a fresh one: all that syncer asks for may
    be asked twice.
    """
    authority, certificate, key = certificates
    return {
        "root_certificates": _read(authority),
        "certificate_chain": _read(certificate),
        "private_key": _read(key or certificate),
        "grpc.service_config": json.dumps(_ONCE_MORE),
        "grpc.per_rpc_retry_buffer_size": 2 * most_bytes,  # what is larger is not made again
        "grpc.initial_reconnect_backoff_ms": _LONGEST_WAIT // 10,
        "grpc.max_reconnect_backoff_ms": _LONGEST_WAIT,
    }


def _read(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()
