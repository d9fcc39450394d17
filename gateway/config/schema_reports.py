"""What the host says of itself: its logs, and budget alerts to a webhook."""

from typing import Literal

from pydantic import Field

from gateway.config.sections import Section, Variable


class Logs(Section):
    format: Literal["text", "json"] = Field(
        "text", description="`json`: an object a line, with the request's id where there is one"
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="what is less is not written"
    )


class Alerts(Section):
    webhook_env: Variable | None = Field(
        None, description="environment variable with the address that budget alerts are posted to"
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that signs them"
    )
