"""Section for traces and metrics over OpenTelemetry's protocol; off if missing."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import URL, ConfigSection, Ratio, Variable

Collector = Annotated[str, Field(pattern=URL, max_length=300)]


class OpenTelemetrySection(ConfigSection):
    """Export over OTLP; needs the extra `opentelemetry`. Spans contain no prompts or answers."""

    endpoint: Collector | None = Field(
        None,
        description="a collector's OTLP/HTTP address, to which `/v1/traces` and `/v1/metrics` are"
        " added: http://collector:4318; nothing is sent without it",
    )
    traces: bool = Field(
        True, description="whether spans of requests, decisions, attempts and engines are sent"
    )
    metrics: bool = Field(True, description="whether the GenAI conventions' histograms are sent")
    sample: Ratio = Field(
        1.0,
        description="share of requests that is traced where the client decided nothing by a "
        "`traceparent`",
    )
    vocabularies: tuple[Literal["openinference", "langfuse"], ...] = Field(
        (),
        description="further words for spans beside the GenAI conventions': `openinference` for "
        "Phoenix and Arize, `langfuse`; both tell the key's user and tags, the session and dollars",
    )
    headers_env: Variable | None = Field(
        None,
        description="environment variable with headers for the collector: `name=value,name=value`",
    )
    environment: str | None = Field(
        None,
        max_length=100,
        description="value of `deployment.environment.name` in all that is sent",
    )

    @property
    def traces_url(self) -> str | None:
        return self._below("v1/traces")

    @property
    def metrics_url(self) -> str | None:
        return self._below("v1/metrics")

    def _below(self, path: str) -> str | None:
        return None if self.endpoint is None else f"{self.endpoint.rstrip('/')}/{path}"
