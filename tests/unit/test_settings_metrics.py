"""Which addresses and files the metrics take."""

from __future__ import annotations

import pytest
from settings_loading import given, refusal


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9464", "[::1]:1", "0.0.0.0:65535", "localhost:0", "my-host.lan:80"]
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    assert given(metrics__listen=address).metrics.listen == address


@pytest.mark.parametrize(
    "address", ["9464", ":9464", "127.0.0.1", "::1:9464", "127.0.0.1:65536", "http://h:1", "h:1/x"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    assert "must be like 127.0.0.1:9464" in refusal(metrics__listen=address)


@pytest.mark.rule("SE-02")
def test_only_this_machine_is_listened_to_unless_asked_otherwise() -> None:
    assert given().metrics.listen == "127.0.0.1:9464"
    assert given(metrics__listen="").metrics.listen is None


def test_a_textfile_has_a_name_that_node_exporter_reads() -> None:
    assert "must end with .prom" in refusal(metrics__textfile="/var/syncer.txt")
    assert given(metrics__textfile="").metrics.textfile is None
