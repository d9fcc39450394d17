"""Environment of each process that `serve` starts, with only the secrets that it needs.

Processes of the same user and crash reports can read a process's environment. Workers get the
configured keys and the ledger's address; the batch runner the keys of providers with batches;
telemetry the address, the alert webhook and engines' keys; ledger writer and dashboard the address;
the peer exchange only its secret; simulators none. The engine installer gets package index
variables.
"""

from collections.abc import Iterable, Mapping

from backends.environ import plain_environ, sounds_secret
from backends.providers import key_variables
from gateway.config.checks.provider_names import prefix_of, wire_of_provider
from gateway.config.credentials import peers_secret
from gateway.config.settings import ProviderSection, Settings
from gateway.errors import ConfigError
from ledger.database import URL_VARIABLE

# Proxy addresses may contain a password: only for processes that call other hosts.
_OUTWARD = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_DATABASE = "PG"  # libpq reads what the address leaves out from PGHOST, PGPASSWORD and so on
_TRACING = "OTEL_"  # OpenTelemetry's SDK: a collector's certificate, sizes of batches, attributes
_KUBERNETES = "KUBERNETES_SERVICE_"
_PACKAGES = ("PIP_", "UV_")  # a package index may need a password, and its address contain one


def installer(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of pip and uv: package index and network variables."""
    fetching = {
        name: value
        for name, value in base.items()
        if name.startswith(_PACKAGES) or name == "NETRC" or name.upper() in _OUTWARD
    }
    return plain_environ(base) | _trust(base) | fetching


def ledger_reader(base: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the environment of a process that opens the ledger."""
    database = {name: value for name, value in base.items() if name.startswith(_DATABASE)}
    return plain_environ(base) | _trust(base) | database | {URL_VARIABLE: url}


def telemetry(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of telemetry: notifications, reports, and the engines' keys."""
    told = (settings.alerts, settings.events)
    named = {name for section in told for name in (section.webhook_env, section.secret_env)}
    named |= {settings.mail.password_env, *(each.webhook_env for each in settings.reports)}
    named |= _of_engines(settings)
    kept = {
        name: value for name, value in base.items() if name in named or name.upper() in _OUTWARD
    }
    return ledger_reader(base, url) | kept


def peers(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the environment of the peer exchange, with the shared secret."""
    secret = peers_secret(settings.peers, base)
    return plain_environ(base) | {settings.peers.secret_env or "": secret.reveal()}


def sampling(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of sampling, with the gateway keys that pay for it."""
    rules = [pool.sampling for pool in settings.pools.values()]
    named = {rule.key_env for rule in rules if rule is not None}
    return ledger_reader(base, url) | {key: value for key, value in base.items() if key in named}


def scaling(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of scaling: variables of actuators and the API server."""
    sections = [pool.scale for pool in settings.pools.values() if pool.scale is not None]
    named = {name for section in sections for name in section.actuator.env}
    kept = {
        name: value for name, value in base.items() if name in named or name.startswith(_KUBERNETES)
    }
    return ledger_reader(base, url) | kept


def dashboard(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of the dashboard, including Streamlit's variables.

    With an access file the dashboard calls the identity provider, so proxy variables are passed on.
    """
    named = settings.dashboard.reader_url_env
    if named is not None and not (url := base.get(named, "").strip()):
        raise ConfigError([f"dashboard.reader_url_env: `{named}` is not set"])
    own = {name: value for name, value in base.items() if name.startswith("STREAMLIT_")}
    if settings.dashboard.access_file is not None:
        own |= {name: value for name, value in base.items() if name.upper() in _OUTWARD}
    return ledger_reader(base, url) | own


def worker(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of a worker, with the keys that the configuration names.

    Some clients find credentials in the vendor's own variables (`AWS_...`, `AZURE_...`); only the
    variables of configured vendors are passed on. With a configured key, only variables without
    secrets are: version, region, project.
    """
    providers = settings.providers.values()
    named = {provider.api_key_env for provider in providers}
    named |= _of_engines(settings)
    named |= {settings.server.idempotency.replay.key_env, settings.opentelemetry.headers_env}
    named |= _of_commands(providers)
    own = _of_providers(base, settings)
    kept = {
        name: value
        for name, value in base.items()
        if name in named or name in own or name.upper() in _OUTWARD
    }
    return ledger_reader(base, url) | kept | _tracing_variables(base, settings)


def _of_providers(base: Mapping[str, str], settings: Settings) -> set[str]:
    """Return the variables that clients read by themselves, of configured vendors only.

    Without a configured key these include the key, or a role or token file in its place.
    """
    found: set[str] = set()
    for name, provider in settings.providers.items():
        prefix, wire = prefix_of(name, provider), wire_of_provider(name, provider)
        vendors = {variable for variable in base if variable.startswith(wire.variables.of(prefix))}
        keys = set(key_variables(prefix)) if wire.variables.finds_keys else set()
        if provider.names_a_key:
            found |= {variable for variable in vendors if not sounds_secret(variable)}
        else:
            found |= vendors | keys
    return found


def batches(base: Mapping[str, str], url: str, settings: Settings) -> dict[str, str]:
    """Return the environment of the batch runner, with the keys of providers with batches."""
    taking = [provider for provider in settings.providers.values() if provider.batch]
    named = {provider.api_key_env for provider in taking} | _of_commands(taking)
    return ledger_reader(base, url) | {key: value for key, value in base.items() if key in named}


def _of_engines(settings: Settings) -> set[str | None]:
    return {pool.engine.api_key_env for pool in settings.pools.values()}


def _of_commands(providers: Iterable[ProviderSection]) -> set[str | None]:
    """Return the variables that key commands may see."""
    commands = [
        provider.api_key_exec for provider in providers if provider.api_key_exec is not None
    ]
    return {name for command in commands for name in command.env}


def _tracing_variables(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return OpenTelemetry's variables without headers, whose keys logs would not hide.

    Headers come from `headers_env` instead.
    """
    if settings.opentelemetry.endpoint is None:
        return {}
    return {
        name: value
        for name, value in base.items()
        if name.startswith(_TRACING) and "HEADERS" not in name
    }


def _trust(base: Mapping[str, str]) -> dict[str, str]:
    return {name: base[name] for name in _TRUST if name in base}
