"""The section on metrics, health and the status page."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from syncer.settings.base import DAY, OptionalPath, Section
from syncer.settings.checks import absent_if_blank, listen_address, textfile_path

ListenAddress = Annotated[
    Annotated[str, AfterValidator(listen_address)] | None, BeforeValidator(absent_if_blank)
]


class MetricsSettings(Section):
    """[metrics]: where metrics, health and the status page are found."""

    listen: ListenAddress = Field(
        default="127.0.0.1:9464",
        description="Address and port of `/metrics`, `/healthz`, `/readyz` and the status page.",
    )
    port_in_use: Literal["fatal", "warn"] = Field(
        default="fatal", description="What it means if the port is taken."
    )
    textfile: Annotated[OptionalPath, AfterValidator(textfile_path)] = Field(
        default=None, description="File for node exporter, `NAME.prom`, that one-shot runs write."
    )
    unhealthy_failures: int = Field(
        default=5, ge=1, le=1000, description="Failed runs in a row from which on it is unhealthy."
    )
    unhealthy_seconds: float = Field(
        default=900.0,
        ge=0,
        le=30 * DAY,
        description="Seconds without a success after which it is unhealthy; 0 for never.",
    )
