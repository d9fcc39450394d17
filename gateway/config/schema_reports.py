"""Sections for what the host reports: logs, budget alerts to a webhook, samples of engines."""

from typing import Literal

from pydantic import Field

from gateway.config.sections import ConfigSection, Positive, Variable


class LogsSection(ConfigSection):
    format: Literal["text", "json"] = Field(
        "text", description="`json`: an object a line, with the request's id where there is one"
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="what is less is not written"
    )
    to: Literal["files", "stdout"] = Field(
        "files",
        description="`files` in `state_dir`, one a process; `stdout` of `serve`, for containers",
    )
    access: bool = Field(
        default=False,
        description="a line a request: method, path, status, time, target; no query, no prompt",
    )


class AlertsSection(ConfigSection):
    webhook_env: Variable | None = Field(
        None, description="environment variable with the address that budget alerts are posted to"
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that signs them"
    )


class TelemetrySection(ConfigSection):
    scrape_s: Positive = Field(0.5, description="seconds between two reads of an engine's metrics")
    stale_s: Positive = Field(
        10.0, description="an engine whose metrics are older than this is `unknown`"
    )
