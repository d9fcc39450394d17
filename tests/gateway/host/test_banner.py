"""What is printed works as printed, and says what is simulated."""

import shlex
from pathlib import Path

import pytest

from gateway.config.settings import parse
from gateway.config.starter import PROVIDERS, configuration
from gateway.host.banner import address_lines, banner, keys_line

KEY = "gw_public_secret"


@pytest.fixture
def settings(tmp_path: Path):
    return parse(configuration(tmp_path, engine="vllm", gpu=None, keys=()), name="first")


def block(text: str, first_word: str) -> str:
    """The block that begins with a word, as a person would copy it."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(first_word))
    rest = [n for n, line in enumerate(lines) if n > start and not line.strip()]
    return "\n".join(lines[start : rest[0]])


def test_the_curl_is_one_command_with_json(settings):
    words = shlex.split(block(banner(settings, ("127.0.0.1", 8080), KEY, simulated=False), "curl"))
    assert words[:2] == ["curl", "http://127.0.0.1:8080/v1/chat/completions"]
    assert f"Authorization: Bearer {KEY}" in words
    body = words[words.index("-d") + 1]
    assert '"model": "tiny"' in body


def test_the_snippet_is_python(settings):
    text = banner(settings, ("127.0.0.1", 8080), KEY, simulated=False)
    snippet = block(text, "from openai")
    compile(snippet, "snippet", "exec")
    assert f'base_url="http://127.0.0.1:8080/v1", api_key="{KEY}"' in snippet


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("10.1.2.3", "10.1.2.3")])
def test_an_address_that_can_be_opened_is_shown(settings, host, shown):
    text = banner(settings, (host, 9000), KEY, simulated=False)
    assert f"Gateway    http://{shown}:9000/v1 " in text


def test_serve_says_where_gateway_and_dashboard_answer(settings):
    shown = settings.dashboard.model_copy(update={"host": "0.0.0.0", "port": 9001})
    on = settings.model_copy(update={"dashboard": shown})
    off = settings.model_copy(update={"dashboard": shown.model_copy(update={"enabled": False})})
    at = ("0.0.0.0", 9000)
    assert address_lines(on, at) == [
        "gateway on http://127.0.0.1:9000/v1", "dashboard on http://127.0.0.1:9001",
    ]  # fmt: skip
    assert (
        address_lines(off, at)[1] == "dashboard is off: set `dashboard.enabled: true` to start it"
    )


def test_every_simulated_part_is_named(settings):
    address = ("127.0.0.1", 8080)
    real = banner(settings, address, KEY, simulated=False)
    assert "SIMULATED here, and labelled wherever it shows: provider `standin`." in real
    both = banner(settings, address, KEY, simulated=True)
    assert "the engine, provider `standin`" in both
    alone = settings.model_copy(update={"providers": {}})
    assert "SIMULATED" not in banner(alone, address, KEY, simulated=False)


def test_a_dashboard_that_is_off_has_no_address(settings):
    off = settings.model_copy(
        update={"dashboard": settings.dashboard.model_copy(update={"enabled": False})}
    )
    text = banner(off, ("127.0.0.1", 8080), KEY, simulated=False)
    assert "Dashboard  not enabled" in text


def test_keys_are_listed_by_name_and_their_use_is_said():
    assert "No provider keys" in keys_line((), used=True)
    unused = keys_line(PROVIDERS[:2], used=False)
    names = ", ".join(provider.variable for provider in PROVIDERS[:2])
    assert f"NOT used: {names}." in unused
    assert "make run KEYS=1" in unused
    assert "at most $1 a day in all: OPENAI_API_KEY" in keys_line(PROVIDERS[:1], used=True)
