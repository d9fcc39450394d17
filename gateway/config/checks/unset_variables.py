"""Check for unset environment variables with secrets that a start needs."""

from collections.abc import Iterator, Mapping

from gateway.config.faults import ConfigFault, Place, warning
from gateway.config.schema import Settings

NOT_SET = "is not set in the environment"


def check_unset_variables(settings: Settings, environ: Mapping[str, str]) -> Iterator[ConfigFault]:
    """Warn of each unset variable: the file may be checked without secrets, but a start fails."""
    for place, variable in needed_variables(settings):
        if not environ.get(variable, "").strip():
            yield warning(place, f"`{variable}` {NOT_SET}: `breakeven serve` will not start")


def needed_variables(settings: Settings) -> Iterator[tuple[Place, str]]:
    """Yield the variables of sections in use, with the setting that names each."""
    for place, variable in _named_variables(settings):
        if variable is not None:
            yield place, variable


def _named_variables(settings: Settings) -> Iterator[tuple[Place, str | None]]:
    replay, shown = settings.server.idempotency.replay, settings.dashboard
    if replay.enabled:
        yield ("server", "idempotency", "replay", "key_env"), replay.key_env
    for name, pool in settings.pools.items():
        if pool.sampling is not None:
            yield ("pools", name, "sampling", "key_env"), pool.sampling.key_env
        yield ("pools", name, "engine", "api_key_env"), pool.engine.api_key_env
    for name, provider in settings.providers.items():
        yield ("providers", name, "api_key_env"), provider.api_key_env
    yield from _told_by(settings)
    if not settings.ledger.url:
        yield ("ledger", "url_env"), settings.ledger.url_env
    if shown.enabled:
        yield ("dashboard", "reader_url_env"), shown.reader_url_env
    if settings.opentelemetry.endpoint is not None:
        yield ("opentelemetry", "headers_env"), settings.opentelemetry.headers_env
    if settings.peers.hosts:
        yield ("peers", "secret_env"), settings.peers.secret_env


def _told_by(settings: Settings) -> Iterator[tuple[Place, str | None]]:
    """Yield the variables of notifications: webhooks and mail."""
    yield ("alerts", "webhook_env"), settings.alerts.webhook_env
    yield ("alerts", "secret_env"), settings.alerts.secret_env
    yield ("events", "webhook_env"), settings.events.webhook_env
    yield ("events", "secret_env"), settings.events.secret_env
    if settings.mail.user is not None:
        yield ("mail", "password_env"), settings.mail.password_env
    for index, report in enumerate(settings.reports):
        yield ("reports", index, "webhook_env"), report.webhook_env
