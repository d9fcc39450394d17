"""Sections for output of a host: logs, webhooks of alerts and events, reports, samples."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import HOST, ConfigSection, Named, Positive, Variable

Address = Annotated[str, Field(pattern=r"^[^@\s<>,;]+@[^@\s<>,;]+$", max_length=300)]


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
    mail_to: tuple[Address, ...] = Field(
        (), description="addresses that budget alerts are mailed to, by `mail.server`"
    )


class EventsSection(ConfigSection):
    """Messages on each request and attempt, in batches, without prompts and answers."""

    webhook_env: Variable | None = Field(
        None,
        description="environment variable with the address that settled attempts and refused"
        " requests are posted to",
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that signs them"
    )
    batch: int = Field(500, ge=1, le=2000, description="most messages in one post")


class MailSection(ConfigSection):
    server: Annotated[str, Field(pattern=HOST)] | None = Field(
        None, description="SMTP server that reports and alerts are sent by: smtp.example.com:587"
    )
    sender: Address | None = Field(None, description="address that reports and alerts come from")
    tls: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="`starttls`: after the greeting; `tls`: from the first byte; `none`: in the "
        "clear, for a relay on this machine",
    )
    user: str | None = Field(None, description="name to sign in with at the server")
    password_env: Variable | None = Field(
        None, description="environment variable with the password of `user`"
    )


class ReportSection(ConfigSection):
    name: Named = Field(description="name of the report, in its title and in file names")
    every: Literal["day", "week", "month"] = Field(
        "week",
        description="period of `timezone` that it is of, sent once it is over; weeks begin on "
        "Monday",
    )
    when: Literal["always", "unusual"] = Field(
        "always", description="`unusual`: only where a team or model is far above its usual day"
    )
    folder: str | None = Field(
        None, description="folder that the report is written to, as text and JSON"
    )
    webhook_env: Variable | None = Field(
        None,
        description="environment variable with the address that it is posted to, in the form of "
        "`alerts.form` and signed with `alerts.secret_env`",
    )
    mail_to: tuple[Address, ...] = Field(
        (), description="addresses that it is mailed to, by `mail.server`"
    )


class TelemetrySection(ConfigSection):
    scrape_s: Positive = Field(0.5, description="seconds between two reads of an engine's metrics")
    stale_s: Positive = Field(
        10.0, description="age of its metrics from which on an engine is `unknown`"
    )
