"""Sections for what the host reports: logs, webhooks of alerts and requests, samples of engines."""

from typing import Literal

from pydantic import Field

from gateway.config.sections import ConfigSection, Positive, Variable


class LogsSection(ConfigSection):
    format: Literal["text", "json"] = Field(
        "text",
        description="form of a line; `json`: an object with the request's id where there is one",
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="lowest level that is written"
    )
    to: Literal["files", "stdout"] = Field(
        "files",
        description="place of the logs: `files` in `state_dir`, one a process; `stdout` of "
        "`serve`, for containers",
    )
    access: bool = Field(
        default=False,
        description="whether each request has a line: method, path, status, time, target; no "
        "query, no prompt",
    )


class AlertsSection(ConfigSection):
    webhook_env: Variable | None = Field(
        None, description="environment variable with the address that budget alerts are posted to"
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that signs them"
    )
    form: Literal["json", "slack"] = Field(
        "json",
        description="form of a message: `json` has all members, `slack` the text alone, as Slack's "
        "and Mattermost's incoming webhooks take it",
    )


class EventsSection(ConfigSection):
    """A message for each request and attempt, in batches; prompts and answers are never in it."""

    webhook_env: Variable | None = Field(
        None,
        description="environment variable with the address that settled attempts and refused"
        " requests are posted to",
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that signs them"
    )
    batch: int = Field(500, ge=1, le=2000, description="most messages in one post")


class TelemetrySection(ConfigSection):
    scrape_s: Positive = Field(0.5, description="seconds between two reads of an engine's metrics")
    stale_s: Positive = Field(
        10.0, description="age of its metrics from which on an engine is `unknown`"
    )
