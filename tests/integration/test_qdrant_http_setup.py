"""The test server with a key, below a prefix, over TLS, and with a limit."""

from __future__ import annotations

import json
import ssl
import uuid
from pathlib import Path

import httpx
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_http import Options, Tls, anywhere, running
from qdrant_http.certificates import self_signed


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
def test_a_key_is_asked_for_everywhere_but_at_the_health_checks(tmp_path: Path) -> None:
    key = uuid.uuid4().hex
    with running(Options(folder=tmp_path, api_key=key)) as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        without = httpx.get(f"{server.url}/collections")
        assert without.status_code == 401
        assert without.text == "Must provide an API key or an Authorization bearer token"
        wrong = httpx.get(f"{server.url}/collections", headers={"api-key": key[1:]})
        assert (wrong.status_code, wrong.text) == (401, "Invalid API key or JWT")
        client = anywhere.client(server.url, api_key=key)
        assert client.get_collections().collections == []
        client.close()


def test_it_answers_below_a_prefix_alone(tmp_path: Path) -> None:
    with running(Options(folder=tmp_path, prefix="/vectors")) as server:
        root = f"http://127.0.0.1:{server.port}"
        client = anywhere.client(root, prefix="vectors")
        client.create_collection("a", vectors_config={})
        assert client.collection_exists("a")
        client.close()
        assert httpx.get(f"{root}/collections").status_code == 404


def trusting(tls: Tls, shown: Tls | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.certificate)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context


def test_over_tls_it_serves_those_who_trust_its_authority(tmp_path: Path) -> None:
    tls = self_signed(tmp_path, "server")
    with running(Options(folder=tmp_path / "q"), tls=tls) as server:
        client = anywhere.client(server.url, verify=trusting(tls))
        assert client.get_collections().collections == []
        client.close()
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{server.url}/collections")


def test_it_can_ask_for_a_certificate_of_the_client_s(tmp_path: Path) -> None:
    server_tls, mine = self_signed(tmp_path, "server"), self_signed(tmp_path, "client")
    asking = Tls(certificate=server_tls.certificate, key=server_tls.key, client_ca=mine.certificate)
    with running(Options(folder=tmp_path / "q"), tls=asking) as server:
        shown = httpx.get(f"{server.url}/healthz", verify=trusting(server_tls, mine))
        assert shown.status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/healthz", verify=trusting(server_tls))


def test_a_body_above_the_limit_is_refused_whole(tmp_path: Path) -> None:
    with running(Options(folder=tmp_path, most_bytes=2**20)) as server:
        client = anywhere.client(server.url)
        client.create_collection("a", vectors_config={})
        point = models.PointStruct(id=1, vector={}, payload={"text": "x" * 2**20})
        with pytest.raises(UnexpectedResponse) as found:
            client.upsert("a", [point])
        assert found.value.status_code == 400
        said = json.loads(found.value.content)["status"]["error"]
        assert said.startswith("Payload error: JSON payload (")
        assert said.endswith(" bytes) is larger than allowed (limit: 1048576 bytes).")
        assert client.count("a").count == 0
        client.close()


def test_where_nothing_listens_there_is_no_answer(tmp_path: Path) -> None:
    with running(Options(folder=tmp_path)) as server:
        client = anywhere.client(server.url)
        client.get_collections()
    with pytest.raises(ResponseHandlingException):
        client.get_collections()
    client.close()
