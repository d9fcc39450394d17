"""Secrets that the configuration refers to: by environment variable, file or command.

Commands work like credential helpers of container tools: they run without a shell, print the secret
and exit with 0. They see environment variables without secrets and those that their section names.
A command runs when a process starts that needs the key. Its output is never shown, because it may
be the secret.
"""

import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from backends.environ import plain_environ
from backends.providers import DIRECT, key_variables
from backends.secret import Secret
from gateway.config.checks.provider_names import prefix_of, wire_of_provider
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.config.schema_peers import PeersSection
from gateway.config.schema_reports import AlertsSection, EventsSection
from gateway.config.sections import KeyCommandSection
from gateway.config.settings import EngineSection, ProviderSection, Settings
from gateway.errors import ConfigError
from ledger.database import URL_VARIABLE

LONGEST = 16 * 1024
AT_ONCE = 8  # commands run in parallel
LEAST_SHARED = 32  # minimum characters of the shared secret of hosts
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


def provider_key(
    provider: ProviderSection | None, name: str, environ: Mapping[str, str]
) -> Secret | None:
    """Return a provider's key. Raises `ConfigError` naming the field, never the value."""
    if provider is None:
        return None
    place = f"providers.{name}"
    if provider.api_key_exec is not None:
        return _run_key_command(provider.api_key_exec, f"{place}.api_key_exec", environ)
    if provider.api_key_file is not None:
        return _read_secret_file(Path(provider.api_key_file), f"{place}.api_key_file")
    if provider.api_key_env is not None:
        value = environ.get(provider.api_key_env)
        if not value:
            raise ConfigError(
                [f"{place}.api_key_env: `{provider.api_key_env}` is not set in the environment"]
            )
        return _parse_secret(value, f"{place}.api_key_env: `{provider.api_key_env}` must hold")
    return _usual_key(provider, name, environ)


def _usual_key(provider: ProviderSection, name: str, environ: Mapping[str, str]) -> Secret | None:
    """Return the key that LiteLLM would find; None for a configured address."""
    if provider.base_url is not None or wire_of_provider(name, provider) is not DIRECT:
        return None
    variables = key_variables(prefix_of(name, provider))
    variable = next((variable for variable in variables if environ.get(variable)), None)
    if variable is None:
        return None
    return _parse_secret(environ[variable], f"providers.{name}: `{variable}` must hold")


def provider_keys(
    providers: Mapping[str, ProviderSection], environ: Mapping[str, str]
) -> dict[str, Secret | None]:
    """Return the keys by provider; commands run in parallel, each with its own timeout.

    Raises `ConfigError` with the faults of all providers, in their order.
    """
    with ThreadPoolExecutor(AT_ONCE) as threads:
        asked = {
            name: threads.submit(provider_key, provider, name, environ)
            for name, provider in providers.items()
        }
    keys, faults = {}, []
    for name, answer in asked.items():
        try:
            keys[name] = answer.result()
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    return keys


def engine_key(engine: EngineSection, name: str, environ: Mapping[str, str]) -> Secret | None:
    """Return the key of a pool's engines. Raises `ConfigError` like `provider_key`."""
    value = environ.get(engine.api_key_env or "")
    place = f"pools.{name}.engine.api_key_env: `{engine.api_key_env}` must hold"
    return _parse_secret(value, place) if value else None


def engine_headers(engine: EngineSection, name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for an own engine; empty if it needs no key."""
    key = engine_key(engine, name, environ)
    return {"authorization": f"Bearer {key.reveal()}"} if key else {}


def collector_headers(
    settings: OpenTelemetrySection, environ: Mapping[str, str]
) -> dict[str, Secret]:
    """Return headers from OpenTelemetry's format `name=value,name=value`, URL-decoded.

    Raises `ConfigError`, which names the variable and never its value.
    """
    name = settings.headers_env
    if name is None:
        return {}
    place, value = "opentelemetry.headers_env", environ.get(name)
    if not value:
        raise ConfigError([f"{place}: `{name}` is not set in the environment"])
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if not all(_HEADER_NAME.fullmatch(key.strip()) and equals for key, equals, _ in pairs):
        raise ConfigError([f"{place}: `{name}` must hold `name=value,name=value`"])
    must = f"{place}: `{name}`: each value must be"
    return {key.strip(): _parse_secret(unquote(text), must) for key, _, text in pairs}


def webhook(
    settings: AlertsSection | EventsSection, place: str, environ: Mapping[str, str]
) -> tuple[Secret | None, Secret | None]:
    """Return the webhook address of a section and its signing secret.

    Raises `ConfigError`, which names the variable and never its value.
    """
    address = posted_to(settings.webhook_env, f"{place}.webhook_env", environ)
    name = settings.secret_env
    value = environ.get(name, "") if name is not None else ""
    return address, _line(value, f"{place}.secret_env: `{name}` must hold") if value else None


def posted_to(variable: str | None, place: str, environ: Mapping[str, str]) -> Secret | None:
    """Return the address in a variable; None if no variable is named. Raises `ConfigError`."""
    value = environ.get(variable, "") if variable is not None else ""
    if not value:
        return None
    address = _line(value, f"{place}: `{variable}` must hold")
    if not _is_address(address.reveal()):
        words = "must hold one address, `https://...`, and nothing else"
        raise ConfigError([f"{place}: `{variable}` {words}"])
    return address


def peers_secret(settings: PeersSection, environ: Mapping[str, str]) -> Secret:
    """Return the secret of the peer exchange.

    Raises `ConfigError`, which names the variable and never its value.
    """
    name = settings.secret_env
    value = environ.get(name or "", "").strip()
    if len(value) < LEAST_SHARED:
        words = "is not set in the environment" if not value else f"is shorter than {LEAST_SHARED}"
        raise ConfigError([f"peers.secret_env: `{name}` {words}: `openssl rand -hex 32` makes one"])
    return Secret(value)


def known_secrets(settings: Settings, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the secrets that this process may hold at its start, to hide them in logs."""
    for name, provider in settings.providers.items():
        if provider.api_key_exec is None:
            try:
                key = provider_key(provider, name, environ)
            except ConfigError:
                continue  # not for this process, or reported where it is needed
            if key is not None:
                yield key
    with suppress(ConfigError):  # likewise
        yield from collector_headers(settings.opentelemetry, environ).values()
    told, replay = (settings.alerts, settings.events), settings.server.idempotency.replay
    named = [name for section in told for name in (section.webhook_env, section.secret_env)]
    named += [replay.key_env, settings.peers.secret_env]
    named += [settings.mail.password_env, *(each.webhook_env for each in settings.reports)]
    named += [pool.engine.api_key_env for pool in settings.pools.values()]
    named += [
        section.sampling.key_env
        for section in settings.pools.values()
        if section.sampling is not None
    ]
    found = (environ.get(name or "", "") for name in named)
    yield from (Secret(form) for secret in found for form in {secret, secret.strip()} if form)
    variables = (settings.ledger.url_env, settings.dashboard.reader_url_env, URL_VARIABLE)
    for url in (settings.ledger.url, *(environ.get(name or "") for name in variables)):
        yield from _passwords(url)


def _passwords(url: str | None) -> Iterator[Secret]:
    """Yield the password in a URL, as written and as decoded."""
    try:
        password = make_url(url).password if url else None
    except (ArgumentError, ValueError):
        return
    if url and password:
        yield from (Secret(str(password)), Secret(url))


def _read_secret_file(path: Path, place: str) -> Secret:
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST + 1).decode("utf-8-sig")  # strips a byte order mark
    except OSError as error:
        raise ConfigError([f"{place}: {error.strerror}"]) from error
    except UnicodeDecodeError:
        raise ConfigError([f"{place}: not a text"]) from None
    return _parse_secret(text, f"{place}: must hold")


def _run_key_command(command: KeyCommandSection, place: str, environ: Mapping[str, str]) -> Secret:
    seen = plain_environ(environ) | {name: environ[name] for name in command.env if name in environ}
    try:
        code, said = _run(command, seen)
    except TimeoutError:
        raise ConfigError([f"{place}: no secret within {command.timeout_s:g} s"]) from None
    except OSError as error:
        words = f"`{command.argv[0]}` cannot be run: {error.strerror}"
        raise ConfigError([f"{place}.argv: {words}"]) from None
    if code:
        words = f"`{command.argv[0]}` ended with {code}; run it by hand to see why"
        raise ConfigError([f"{place}: {words}"])
    return _parse_secret(said.decode("utf-8", "replace"), f"{place}: must print")


def _run(command: KeyCommandSection, environ: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a command; return its status and output. A command with too much output is stopped."""
    until_s = time.monotonic() + command.timeout_s
    with subprocess.Popen(  # noqa: S603  (no shell; its words are the operator's)
        list(command.argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environ,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = b""
        try:
            while part := _part(process.stdout.fileno(), until_s):
                said += part
                if len(said) > LONGEST:
                    return 0, said
            return process.wait(max(0.0, until_s - time.monotonic())), said
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            process.kill()


def _part(file: int, until_s: float) -> bytes:
    """Return the next bytes; empty at the end. Raises `TimeoutError`."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if not poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
        raise TimeoutError
    return os.read(file, LONGEST + 1)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _line(text: str, must: str) -> Secret:
    """Return the secret in a line of any characters, checked like `_parse_secret`."""
    line = text.strip()
    if not line or len(line) > LONGEST or not line.isprintable():
        raise ConfigError([f"{must} one line, and nothing that cannot be seen"])
    return Secret(line)


def _parse_secret(text: str, must: str) -> Secret:
    """Return the secret without outer white space; many tools end it with a line break."""
    word = text.strip()
    if not word or len(word) > LONGEST or not word.isascii() or not word.isprintable():
        raise ConfigError([f"{must} one line, the secret and nothing else, in ASCII"])
    return Secret(word)
