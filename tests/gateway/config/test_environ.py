"""Which secrets each process of `serve` gets: by the functions, and as the kernel shows them."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from backends.engine.guard import descendants
from gateway.config import environ
from gateway.config.settings import ConfigError, Settings, parse

SECRETS = {
    "STANDIN_CRED": "s-1", "OTHER_API_KEY": "s-2", "openai_api_key": "s-3", "DB_PASS": "s-4",
    "BREAKEVEN_LEDGER_URL": "sqlite:///elsewhere?s-5",
}  # fmt: skip
NAMED = {"start": True, "simulated": True, "prices_as": "openai/gpt-4o-mini"}
URL = "BREAKEVEN_LEDGER_URL"


def _settings(**provider):
    models = {"m": {"targets": ["there/gpt-4o-mini"]}}
    return parse(json.dumps({"models": models, "providers": {"there": provider}}), name="test")


def test_a_worker_gets_the_keys_that_the_configuration_names() -> None:
    base = {**SECRETS, "PATH": "/bin", "PGPASSWORD": "p", "https_proxy": "http://u:p@proxy"}
    settings = _settings(kind="litellm", litellm_prefix="gemini", api_key_env="STANDIN_CRED")
    assert environ.worker(base, "db", settings) == {
        "PATH": "/bin", "PGPASSWORD": "p", "https_proxy": "http://u:p@proxy",
        "STANDIN_CRED": "s-1", URL: "db",
    }  # fmt: skip


def test_a_command_that_prints_a_key_finds_what_it_may_see() -> None:
    settings = _settings(
        base_url="https://x.example/v1", batch=True,
        api_key_exec={"argv": ["vault"], "env": ["STANDIN_CRED"]},
    )  # fmt: skip
    for process in (environ.worker, environ.batches):
        assert process(SECRETS, "db", settings) == {"STANDIN_CRED": "s-1", URL: "db"}
    assert environ.telemetry(SECRETS, "db", settings) == {URL: "db"}


def test_a_worker_gets_the_secret_of_kept_answers_and_nobody_else() -> None:
    replay = {"replay": {"enabled": True, "key_env": "STANDIN_CRED"}}
    settings = parse(json.dumps({"server": {"idempotency": replay}}), name="test")
    assert environ.worker(SECRETS, "db", settings) == {"STANDIN_CRED": "s-1", URL: "db"}
    assert environ.telemetry(SECRETS, "db", settings) == {URL: "db"}


def test_a_worker_that_traces_gets_what_opentelemetry_reads_but_no_headers() -> None:
    said = {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem", "OTEL_RESOURCE_ATTRIBUTES": "team=sre"}
    base = {**SECRETS, **said, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=s-9"}
    tracing = parse('{"opentelemetry": {"endpoint": "http://collector:4318"}}', name="test")
    assert environ.worker(base, "db", tracing) == {**said, URL: "db"}
    assert environ.worker(base, "db", parse("{}", name="test")) == {URL: "db"}
    assert environ.telemetry(base, "db", tracing) == {URL: "db"}


def test_litellm_without_a_named_key_finds_its_vendors_own_variables() -> None:
    """A role's variables are among them, of which the SDKs make credentials; no other secret is."""
    amazon = {"AWS_SECRET_ACCESS_KEY": "a", "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/t"}
    azure = {"AZURE_FEDERATED_TOKEN_FILE": "/var/run/t", "AZURE_CLIENT_ID": "c"}
    google = {"GOOGLE_APPLICATION_CREDENTIALS": "/var/run/g.json", "VERTEXAI_PROJECT": "p"}
    base = {**SECRETS, **amazon, **azure, **google, "GEMINI_API_KEY": "g"}
    vendors = {
        "bedrock": amazon, "azure": azure, "vertex_ai": google, "gemini": {"GEMINI_API_KEY": "g"},
    }  # fmt: skip
    for prefix, own in vendors.items():
        settings = _settings(kind="litellm", litellm_prefix=prefix, base_url="https://x.example")
        assert environ.worker(base, "db", settings) == {**own, URL: "db"}


def test_a_name_that_needs_no_adapter_finds_its_usual_key() -> None:
    base = {**SECRETS, "PERPLEXITY_API_KEY": "p", "GROQ_API_KEY": "q"}
    settings = _settings(kind="litellm", litellm_prefix="perplexity")
    assert environ.worker(base, "db", settings) == {"PERPLEXITY_API_KEY": "p", URL: "db"}


def test_who_opens_the_ledger_gets_no_key() -> None:
    base = {**SECRETS, "PATH": "/bin", "STREAMLIT_THEME_BASE": "dark"}
    assert environ.ledger_reader(base, "db") == {"PATH": "/bin", URL: "db"}
    none = parse('{"models": {}}', name="test")
    assert environ.dashboard(base, "db", none).keys() == {"PATH", URL, "STREAMLIT_THEME_BASE"}


def test_beside_a_named_key_litellm_finds_what_is_no_secret() -> None:
    base = {**SECRETS, "AZURE_API_VERSION": "2024-06-01", "AWS_SECRET_ACCESS_KEY": "s-9"}
    azure = _settings(
        kind="litellm", litellm_prefix="azure", base_url="https://x.example",
        api_key_env="STANDIN_CRED",
    )  # fmt: skip
    found = environ.worker(base, "db", azure)
    assert found["AZURE_API_VERSION"] == "2024-06-01"
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert "AZURE_API_VERSION" not in environ.worker(
        base, "db", _settings(base_url="https://x.example/v1")
    )


def test_the_dashboard_reads_as_a_role_that_only_reads() -> None:
    text = {"models": {}, "dashboard": {"reader_url_env": "READER", "access_file": "a.toml"}}
    settings = parse(json.dumps(text), name="test")
    base = {**SECRETS, "READER": "reader's", "https_proxy": "http://u:p@proxy"}
    found = environ.dashboard(base, "db", settings)
    assert found == {URL: "reader's", "https_proxy": "http://u:p@proxy"}
    with pytest.raises(ConfigError, match="`READER` is not set"):
        environ.dashboard(SECRETS, "db", settings)


def test_telemetry_gets_the_webhook_and_the_way_there() -> None:
    text = {"models": {}, "alerts": {"webhook_env": "DB_PASS", "secret_env": "OTHER_API_KEY"}}
    settings = parse(json.dumps(text), name="test")
    base = {**SECRETS, "https_proxy": "http://u:p@proxy"}
    assert environ.telemetry(base, "db", settings) == {
        "DB_PASS": "s-4", "OTHER_API_KEY": "s-2", "https_proxy": "http://u:p@proxy", URL: "db",
    }  # fmt: skip


def test_telemetry_asks_engines_with_their_keys() -> None:
    engine = {"endpoints": ["http://127.0.0.1:1/v1"], "api_key_env": "OTHER_API_KEY"}
    pools = {"p": {"engine": engine, "gpu": {"type": "H200"}}}
    settings = parse(json.dumps({"models": {}, "pools": pools}), name="test")
    for process in (environ.worker, environ.telemetry):
        assert process(SECRETS, "db", settings) == {"OTHER_API_KEY": "s-2", URL: "db"}
    assert "OTHER_API_KEY" not in environ.batches(SECRETS, "db", settings)


def test_sampling_gets_the_keys_of_its_accounts() -> None:
    rule = {"teams": ["a"], "model": "m", "baseline": "b", "key_env": "DB_PASS"}
    pool = {"engine": {}, "gpu": {"type": "CPU"}}
    models = {"m": {"targets": ["pool:p"], "compare_with": ["openai/gpt-4o-mini"]},
              "b": {"targets": ["pool:q"], "compare_with": ["openai/gpt-4o-mini"]}}  # fmt: skip
    text = {"models": models, "pools": {"p": pool | {"sampling": rule}, "q": pool}}
    settings = Settings.model_validate(text)
    assert environ.sampling(SECRETS, "db", settings) == {"DB_PASS": "s-4", URL: "db"}


def test_who_installs_packages_gets_the_way_to_them_and_no_key() -> None:
    way = {
        "PATH": "/bin", "PIP_INDEX_URL": "https://u:p@index", "UV_INDEX_OURS_PASSWORD": "p",
        "NETRC": "/n", "HTTPS_PROXY": "http://u:p@proxy", "SSL_CERT_FILE": "/c",
        "CUDA_HOME": "/cuda",
    }  # fmt: skip
    assert environ.installer({**SECRETS, **way, "PGPASSWORD": "p", "AWS_PROFILE": "a"}) == way


FORGETS_TO_LEAVE_SECRETS = """
from backends import environ

environ.plain_environ = dict
"""


@pytest.mark.parametrize("control", [False, True])
def test_every_child_of_serve_has_only_its_own_secrets(make_host, tmp_path, control) -> None:
    """Looked for in all of its memory: a forked process has what its parent had read."""
    mark = token_hex(8)  # of all of them: what holds none is searched once
    secrets = {name: f"{value}-{mark}" for name, value in SECRETS.items()}
    provider = {**NAMED, "api_key_env": "STANDIN_CRED"}
    host = make_host(workers=1, engines=1, providers={"standin": provider})
    host.warm = False
    host.environ |= secrets
    if control:
        (tmp_path / "sitecustomize.py").write_text(FORGETS_TO_LEAVE_SECRETS)
        host.environ["PYTHONPATH"] = f"{tmp_path}:{host.root}"
    host.start()
    own = {"its own ledger": host.ledger}
    seen = {
        program(pid): told_in(pid, secrets, mark) | told_in(pid, own, host.ledger)
        for pid in descendants(host.process.pid)
    }
    openers = {"gateway.worker", "ledger.writer", "gateway.host.telemetry", "dashboard.start"}
    assert all("its own ledger" in seen[name] for name in openers & seen.keys())
    for name in openers & seen.keys():
        seen[name] -= {"its own ledger"}
    others = {
        "(fork server)", "ledger.writer", "gateway.host.telemetry", "backends.simulator.server",
        "backends.simulator.provider",
    }  # fmt: skip
    if control:
        assert all(set(secrets) <= seen[name] for name in others)
    else:
        assert seen.pop("gateway.worker") == {"STANDIN_CRED"}
        assert others <= seen.keys() <= others | {"dashboard.start"}
        assert not any(seen.values())


def program(pid: int) -> str:
    """The module that it runs: the last one, where one runs another."""
    words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    if "fork server" in words:
        return "(fork server)"
    return words.rpartition("-m ")[2].partition(" ")[0]


def told_in(pid: int, values: dict[str, str], mark: str) -> set[str]:
    """Which of the values stand in its memory; the mark is in each of them."""
    return {
        name
        for part in memory(pid)
        if mark.encode() in part
        for name, value in values.items()
        if value.encode() in part
    }


def memory(pid: int) -> Iterator[bytes]:
    """All that it may have written to."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb") as held:
        for line in maps:
            place, modes, *_ = line.split()
            if modes.startswith("rw"):
                first, last = (int(number, 16) for number in place.split("-"))
                held.seek(first)
                with contextlib.suppress(OSError):  # it is gone, or a device's
                    yield held.read(last - first)


def test_the_exchange_with_other_hosts_gets_their_secret_and_no_ledger() -> None:
    peers = {"listen": "0.0.0.0:1", "hosts": ["b:1"], "secret_env": "SHARED"}
    settings = parse(json.dumps({"peers": peers}), name="test")
    base = {**SECRETS, "PATH": "/bin", "SHARED": "s" * 32}
    assert environ.peers(base, settings) == {"PATH": "/bin", "SHARED": "s" * 32}
    assert "SHARED" not in environ.worker(base, "db", settings)
    with pytest.raises(ConfigError, match=r"peers\.secret_env: `SHARED` is not set"):
        environ.peers(SECRETS, settings)
