"""Metrics, health and the status page over HTTP, for this machine unless asked otherwise."""

from __future__ import annotations

from syncer.web.server import Pages, WebServer, listen
from syncer.web.status import NextRun, StatusPage

__all__ = ["NextRun", "Pages", "StatusPage", "WebServer", "listen"]
