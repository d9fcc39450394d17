"""Every variable with a secret that a start needs is warned of while it is not set."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from gateway.config.checks.unset_variables import check_unset_variables, needed_variables
from gateway.config.schema import Settings
from gateway.config.sections import section_of

EVERYTHING = {
    "server": {"idempotency": {"replay": {"enabled": True, "key_env": "REPLAY"}}},
    "ledger": {"url_env": "LEDGER"},
    "pools": {
        "a": {
            "engine": {"endpoints": ["http://10.0.0.1/v1"], "api_key_env": "ENGINE"},
            "gpu": {"type": "CPU"},
            "sampling": {"teams": ["t"], "model": "m", "baseline": "b", "key_env": "SAMPLING"},
        }
    },
    "providers": {"openai": {"api_key_env": "OPENAI"}},
    "alerts": {"webhook_env": "WEBHOOK", "secret_env": "SIGNS"},
    "events": {"webhook_env": "EVENTS", "secret_env": "SEALS"},
    "mail": {"server": "m:25", "sender": "a@b", "user": "u", "password_env": "MAIL"},
    "reports": [{"name": "r", "webhook_env": "REPORT"}],
    "dashboard": {"enabled": True, "reader_url_env": "READER"},
    "opentelemetry": {"endpoint": "http://c:1", "headers_env": "HEADERS"},
    "peers": {"hosts": ["a:1"], "listen": "b:2", "secret_env": "PEERS"},
}


def _fields(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        section, suffix = section_of(field.annotation)
        if section is not None:
            yield from _fields(section, f"{path}{name}{suffix}.")
        elif name.endswith("_env"):
            yield path + name


def test_every_setting_that_names_a_variable_is_looked_at() -> None:
    settings = Settings.model_validate(EVERYTHING)
    warned = {fault.path for fault in check_unset_variables(settings, {})}
    shown = {path.replace("pools.NAME", "pools.a").replace("providers.NAME", "providers.openai")
             for path in _fields(Settings)}  # fmt: skip
    shown = {path.replace("reports[]", "reports[0]") for path in shown}
    assert warned == shown
    assert all(fault.severity == "warning" for fault in check_unset_variables(settings, {}))


@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_a_blank_is_no_value_and_no_value_is_ever_shown(value) -> None:
    settings = Settings.model_validate({"providers": {"openai": {"api_key_env": "KEY"}}})
    (fault,) = check_unset_variables(settings, {"KEY": value})
    assert fault.message.startswith("`KEY` is not set in the environment")
    assert list(check_unset_variables(settings, {"KEY": "sk-secret"})) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"server": {"idempotency": {"replay": {"key_env": "K"}}}},
        {"ledger": {"url": "sqlite:///x", "url_env": "K"}},
        {"dashboard": {"reader_url_env": "K"}},
        {"opentelemetry": {"headers_env": "K"}},
        {"mail": {"password_env": "K"}},
        {"peers": {"secret_env": "K"}},
    ],
)
def test_what_is_switched_off_needs_no_variable(changes) -> None:
    assert list(needed_variables(Settings.model_validate(changes))) == []
