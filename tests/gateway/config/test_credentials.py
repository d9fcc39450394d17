"""References to secrets: what each finds, and that no refusal says what it found."""

import resource
import sys

import pytest

from backends.secret import Secret
from gateway.config.credentials import (
    collector_headers,
    engine_headers,
    engine_key,
    known_secrets,
    peers_secret,
    provider_key,
    provider_keys,
    webhook,
)
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.config.schema_peers import PeersSection
from gateway.config.schema_reports import AlertsSection
from gateway.config.settings import EngineSection, ProviderSection, Settings, parse
from gateway.errors import ConfigError

CANARY = "sk-canary-0123456789"


def helper(code: str, **more: object) -> ProviderSection:
    return ProviderSection.model_validate(
        {"api_key_exec": {"argv": [sys.executable, "-c", code], **more}}
    )


def test_from_the_environment_or_a_file(tmp_path) -> None:
    path = tmp_path / "key"
    path.write_text("sk-file\n")
    assert provider_key(ProviderSection(api_key_env="K"), "p", {"K": "sk-env"}) == Secret("sk-env")
    assert provider_key(ProviderSection(api_key_file=str(path)), "p", {}) == Secret("sk-file")
    assert provider_key(ProviderSection(), "p", {}) is None
    assert provider_key(None, "p", {}) is None
    with pytest.raises(ConfigError, match=r"providers\.p\.api_key_env: `K` is not set"):
        provider_key(ProviderSection(api_key_env="K"), "p", {"K": ""})
    with pytest.raises(ConfigError, match=r"providers\.p\.api_key_file: No such file"):
        provider_key(ProviderSection(api_key_file=str(tmp_path / "none")), "p", {})
    path.write_bytes(b"\xef\xbb\xbfsk-file\r\n")
    assert provider_key(ProviderSection(api_key_file=str(path)), "p", {}) == Secret("sk-file")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not a text"):
        provider_key(ProviderSection(api_key_file=str(path)), "p", {})


ENDED = ("sk-1\n", " sk-1\r\n", "sk-1")  # as tools that keep secrets like to hand them out
NO_WORD = ("sk-1\nsk-2", "sk-1\x1b[2J", "schl\u00fcssel", "x" * 20_000)


@pytest.mark.parametrize("value", ENDED)
def test_a_line_s_end_is_no_part_of_a_key(value, tmp_path) -> None:
    path, pool = tmp_path / "key", EngineSection(api_key_env="K", model="m")
    path.write_text(value)
    assert provider_key(ProviderSection(api_key_env="K"), "p", {"K": value}) == Secret("sk-1")
    assert provider_key(ProviderSection(api_key_file=str(path)), "p", {}) == Secret("sk-1")
    assert engine_headers(pool, "own", {"K": value}) == {"authorization": "Bearer sk-1"}
    assert engine_headers(pool, "own", {}) == {}


@pytest.mark.parametrize("value", NO_WORD)
def test_what_is_no_key_is_refused_at_the_start_and_not_quoted(value, tmp_path) -> None:
    """Each request would fail with it, or each would be sent without a key."""
    path, pool = tmp_path / "key", EngineSection(api_key_env="K", model="m")
    for text in (value, "", "\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"^providers\.p\.api_key_file: must hold one line"):
            provider_key(ProviderSection(api_key_file=str(path)), "p", {})
    with pytest.raises(ConfigError, match=r"^providers\.p\.api_key_env: `K` must hold") as raised:
        provider_key(ProviderSection(api_key_env="K"), "p", {"K": value})
    assert value not in str(raised.value)
    with pytest.raises(ConfigError, match=r"^pools\.own\.engine\.api_key_env: `K` must hold"):
        engine_key(pool, "own", {"K": value})


def test_of_a_large_file_a_little_is_read(tmp_path) -> None:
    path = tmp_path / "key"
    with path.open("wb") as file:
        file.truncate(1 << 42)  # no memory holds it
    with pytest.raises(ConfigError, match="must hold one line"):
        provider_key(ProviderSection(api_key_file=str(path)), "p", {})


def test_from_a_command_that_sees_what_it_is_given() -> None:
    said = "import os; print(os.environ.get('TOKEN', 'none'), os.environ.get('OTHER', 'none'))"
    environ = {"TOKEN": CANARY, "OTHER": "seen"}
    assert provider_key(helper(said), "p", environ) == Secret("none none")
    assert provider_key(helper(said, env=["TOKEN"]), "p", environ) == Secret(f"{CANARY} none")


def test_no_shell_reads_its_words() -> None:
    echo = ProviderSection.model_validate(
        {"api_key_exec": {"argv": ["echo", "$(id)", ";", "`id`"]}}
    )
    assert provider_key(echo, "p", {"PATH": "/usr/bin:/bin"}) == Secret("$(id) ; `id`")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (f"import sys; print('{CANARY}'); sys.exit('{CANARY}')", "ended with 1"),
        ("", "must print one line"),
        (f"print('{CANARY}'); print('{CANARY}')", "must print one line"),
        (f"print('{CANARY}\\x1b[2J')", "must print one line"),
        ("print('x' * 20000)", "must print one line"),
        (f"print('{CANARY}', flush=True); import time; time.sleep(60)", "no secret within 0.2 s"),
        ("import os, time; os.close(1); time.sleep(60)", "no secret within 0.2 s"),
    ],
)
def test_a_command_that_fails_is_named_and_not_quoted(code, told) -> None:
    with pytest.raises(ConfigError, match=rf"^providers\.p\.api_key_exec: .*{told}") as raised:
        provider_key(helper(code, timeout_s=0.2 if "sleep" in code else 30), "p", {})
    shown = raised.value
    while shown is not None:  # and nothing that a traceback would show
        assert CANARY not in str(shown).partition(": ")[2].replace(code, "")
        assert CANARY not in str(getattr(shown, "output", ""))
        shown = None if shown.__suppress_context__ else shown.__context__


def test_a_command_that_prints_without_end_is_ended() -> None:
    """What it prints was kept until its time was over: gigabytes."""
    shout = "import os\nwhile True: os.write(1, bytes(65536)); os.write(2, bytes(65536))"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match="must print one line"):
        provider_key(helper(shout, timeout_s=3), "p", {})
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown < 64 * 1024, "KiB"


def test_a_command_that_is_not_there_is_named() -> None:
    missing = ProviderSection.model_validate({"api_key_exec": {"argv": ["/no/such/helper"]}})
    with pytest.raises(ConfigError, match=r"api_key_exec\.argv: `/no/such/helper` cannot be run"):
        provider_key(missing, "p", {})


MEETING = """
import pathlib, sys, time
place, name, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
(place / name).touch()
while len(list(place.iterdir())) < count:
    time.sleep(0.01)
print(f"sk-{name}")
"""


def test_commands_are_asked_at_once(tmp_path) -> None:
    """Each ends when the others have begun: one after the other, the first would wait in vain."""
    names = ("vault", "aws", "gcloud")
    providers = {
        name: ProviderSection.model_validate(
            {"api_key_exec": {"argv": [sys.executable, "-c", MEETING, str(tmp_path), name, "3"]}}
        )
        for name in names
    }
    assert provider_keys(providers, {}) == {name: Secret(f"sk-{name}") for name in names}


def test_what_is_wrong_of_each_is_told_at_once_and_in_their_order() -> None:
    providers = {
        "slow": helper("import time; time.sleep(60)", timeout_s=0.2),
        "fine": helper("print('sk-1')"),
        "gone": ProviderSection.model_validate({"api_key_exec": {"argv": ["/no/such/helper"]}}),
        "unset": ProviderSection(api_key_env="K"),
    }
    with pytest.raises(ConfigError) as raised:
        provider_keys(providers, {})
    assert [fault.partition(": ")[0] for fault in raised.value.faults] == [
        "providers.slow.api_key_exec", "providers.gone.api_key_exec.argv",
        "providers.unset.api_key_env",
    ]  # fmt: skip


CONFIG = """
models: {api: {targets: [openai/gpt-4o-mini, told/m]}}
providers:
  openai: {api_key_env: PROVIDER}
  told: {base_url: "https://told.example/v1", api_key_exec: {argv: [/no/such/helper]}}
ledger: {url_env: LEDGER}
alerts: {webhook_env: WEBHOOK, secret_env: SIGNING}
opentelemetry: {headers_env: OTLP}
"""


HEADERS_NO = ("", "nothing", "=x", "a=1,b", "a b=1", "\ufeffa=1", "a=")
VALUES_NO = ("a=x%0Ay", "a=x%0D%0Ab: y", "a=x%00", "a=schl%C3%BCssel")  # no header can hold it


@pytest.mark.parametrize("value", [*HEADERS_NO, *VALUES_NO])
def test_headers_that_are_none_are_told_by_their_variable_alone(value) -> None:
    with pytest.raises(ConfigError) as caught:
        collector_headers(OpenTelemetrySection(headers_env="OTLP"), {"OTLP": value})
    assert "opentelemetry.headers_env: `OTLP`" in str(caught.value)
    assert not value or value not in str(caught.value).replace("name=value", "")


def test_a_collectors_headers_are_read_as_opentelemetry_writes_them() -> None:
    found = collector_headers(
        OpenTelemetrySection(headers_env="OTLP"),
        {"OTLP": "authorization=Bearer%20x=y, x-team = sre"},
    )
    assert found == {"authorization": Secret("Bearer x=y"), "x-team": Secret("sre")}
    assert collector_headers(OpenTelemetrySection(), {}) == {}


@pytest.mark.parametrize("end", ["\n", "\r\n", "%0A", "%0d%0a"])
def test_a_line_s_end_is_no_part_of_a_header(end) -> None:
    """The exporter refused each request, and quoted the header, with its secret, in the log."""
    value = f"authorization=Bearer%20{CANARY}{end}"
    found = collector_headers(OpenTelemetrySection(headers_env="OTLP"), {"OTLP": value})
    assert found == {"authorization": Secret(f"Bearer {CANARY}")}


HOOK = AlertsSection(webhook_env="HOOK", secret_env="SIGN")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " \n"])
def test_a_line_s_end_is_no_part_of_a_webhook(end) -> None:
    address, secret = "https://chat.example/T/s3cret?a=b", "pass phrase \u00fc"
    found = webhook(HOOK, "alerts", {"HOOK": address + end, "SIGN": secret + end})
    assert found == (Secret(address), Secret(secret))
    assert (
        webhook(HOOK, "alerts", {}) == webhook(AlertsSection(), "alerts", {"": "x"}) == (None, None)
    )


@pytest.mark.parametrize(
    "value",
    ["chat.example/T", "\ufeffhttps://chat.example/T", "https://chat.example/T\nhttps://other",
     "file:///etc/passwd", "https://", "http://a:port99/T", "\n", "'https://chat.example/T'"],
)  # fmt: skip
def test_a_webhook_that_is_none_is_told_by_its_variable_alone(value) -> None:
    with pytest.raises(ConfigError, match=r"^alerts\.webhook_env: `HOOK` must hold one") as raised:
        webhook(HOOK, "alerts", {"HOOK": value})
    assert value in ("https://", "\n") or value not in str(raised.value)
    with pytest.raises(ConfigError, match=r"^alerts\.secret_env: `SIGN` must hold one line"):
        webhook(HOOK, "alerts", {"SIGN": "a\nb"})


def test_what_a_process_holds_is_known_for_its_log() -> None:
    url = "postgresql+psycopg://ledger:p%40ssw0rd@db.example/breakeven"
    environ = {"PROVIDER": "sk-1", "LEDGER": url, "WEBHOOK": "https://x/y", "SIGNING": "signing"}
    environ["OTLP"] = "authorization=Bearer%20spans"
    found = set(known_secrets(parse(CONFIG, name="test"), environ))
    wanted = ("sk-1", "p@ssw0rd", url, "https://x/y", "signing", "Bearer spans")
    assert found == {Secret(wanted_value) for wanted_value in wanted}
    assert set(known_secrets(parse(CONFIG, name="test"), {})) == set()
    ended = set(known_secrets(parse(CONFIG, name="test"), {"SIGNING": "signing\n"}))
    assert ended == {Secret("signing"), Secret("signing\n")}


def test_what_hosts_share_is_long_enough_and_in_no_log() -> None:
    peers = PeersSection(listen="0.0.0.0:1", hosts=["b:1"], secret_env="SHARED")
    shared = "s" * 32
    assert peers_secret(peers, {"SHARED": shared}) == Secret(shared)
    assert peers_secret(peers, {"SHARED": f"{shared}\r\n"}) == Secret(shared)
    with pytest.raises(ConfigError, match=r"peers\.secret_env: `SHARED` is shorter than 32"):
        peers_secret(peers, {"SHARED": shared[1:]})
    settings = Settings(peers=peers)
    assert Secret(shared) in set(known_secrets(settings, {"SHARED": shared}))
