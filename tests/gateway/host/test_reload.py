"""SIGHUP without a terminal: prices are in force, the rest is named, a bad file changes nothing."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
import yaml

from gateway.config.settings import load
from gateway.host import serve
from gateway.host.prepare import prepare
from gateway.host.reload import Reload, changed_sections

TEXT = """
state_dir: {state}
models: {{m: {{targets: ["standin/m"]}}}}
providers: {{standin: {{start: true, simulated: true, prices_as: openai/gpt-4o-mini}}}}
policies: [{{name: all, slo: {{ttft_ms: 1000}}}}]
prices: [{prices}]
"""
PRICES = """
source: contract
source_date: 2026-11-01
prices:
  standin/m: {{usd_per_million: {{input: {usd}, output: 2}}}}
"""


@pytest.fixture
def host(tmp_path):
    """A prepared host, its file, and its reload with what it said."""
    path, prices = tmp_path / "breakeven.yaml", tmp_path / "prices.yaml"
    prices.write_text(PRICES.format(usd=1))
    path.write_text(TEXT.format(state=tmp_path / "state", prices=prices))
    settings = load(path)
    url = prepare(settings, path, {}).runtime.ledger_url
    said: list[str] = []
    return path, prices, Reload(settings, path, url, said.append), said


def changed(path, **sections) -> None:
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **sections}))


def test_new_prices_are_in_force_and_the_rest_is_named(host) -> None:
    path, prices, reload, said = host
    prices.write_text(PRICES.format(usd=5))
    changed(path, logs={"level": "debug"}, server={"workers": 3},
            policies=[{"name": "all", "slo": {"ttft_ms": 500}}])  # fmt: skip
    asyncio.run(reload.run())
    assert said[0] == f"SIGHUP: 1 new prices of {path} are in force"
    assert said[1].startswith("SIGHUP: policies differ from those of the start: `breakeven policy")
    assert said[2:] == ["SIGHUP: needs a restart of `breakeven serve`: logs, server"]
    said.clear()
    asyncio.run(reload.run())
    assert said[0] == f"SIGHUP: 0 new prices of {path} are in force"


def test_another_key_in_a_key_file_is_named_as_what_needs_a_restart(host, tmp_path) -> None:
    """SIGHUP said that nothing differs, and the old key went on being sent."""
    path, _, _, said = host
    (key := tmp_path / "key").write_text("one\n")
    changed(path, providers={"standin": {"base_url": "http://127.0.0.1:9/v1", "simulated": True,
                                         "api_key_file": str(key)}})  # fmt: skip
    settings = load(path)
    reload = Reload(settings, path, prepare(settings, path, {}).runtime.ledger_url, said.append)
    key.write_text("one")
    asyncio.run(reload.run())
    assert said[-1] == "SIGHUP: nothing else differs from the start"
    key.write_text("two\n")
    asyncio.run(reload.run())
    assert said[-1] == (
        "SIGHUP: another key needs a restart of `breakeven serve`: providers.standin.api_key_file"
    )


def test_a_file_with_errors_changes_nothing_and_says_why(host) -> None:
    path, prices, reload, said = host
    prices.write_text(PRICES.format(usd=5))
    text = path.read_text()
    path.write_text(text.replace("policies:", "polices:"))
    asyncio.run(reload.run())
    assert any("polices" in line for line in said)
    assert said[-1] == f"SIGHUP: {path} has errors: nothing was changed"
    said.clear()
    path.unlink()
    asyncio.run(reload.run())
    assert "nothing was changed" in said[-1]
    said.clear()
    path.write_text(text)
    asyncio.run(reload.run())
    assert said[0].startswith("SIGHUP: 1 new prices"), "the price of the bad file was not stored"


def test_what_did_not_change_is_said_to_be_so(host) -> None:
    settings = host[2]._settings
    assert changed_sections(settings, settings) == ["nothing else differs from the start"]


@pytest.mark.parametrize(
    ("terminal", "ignored", "reloads", "expected"),
    [
        (True, False, True, "end"),
        (False, False, True, "reload"),
        (True, True, True, "reload"),  # `nohup`
        (True, False, False, "end"),
        (False, True, False, None),
    ],
)
async def test_a_closed_terminal_ends_a_host_and_a_signal_reloads_it(
    monkeypatch, terminal, ignored, reloads, expected
) -> None:
    done: list[str] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    monkeypatch.setattr(serve, "has_terminal", lambda: terminal)
    try:
        reload = (lambda: done.append("reload")) if reloads else None
        serve.on_hangup(lambda: done.append("end"), reload)
        os.kill(os.getpid(), signal.SIGHUP) if expected or ignored else None
        await asyncio.sleep(0.05)
        assert done == ([expected] if expected else [])
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPROF", "SIGPWR"])
def test_a_signal_that_means_nothing_ends_no_process(name) -> None:
    """The control: without the handler it is the process's end."""
    start = "from gateway import logs; from gateway.host.log_wrapper import LogOptions;"
    start += 'logs.start("p", LogOptions("text", "warning"));'
    kill = f"import os, signal, time; os.kill(os.getpid(), signal.{name}); time.sleep(0.3)"
    codes = []
    for words in (start + kill, kill):
        done = subprocess.run(
            [sys.executable, "-c", words], check=False, capture_output=True, text=True
        )
        codes.append(done.returncode)
        if len(codes) == 1:
            assert f"{name} means nothing to this process: it goes on" in done.stderr
    assert codes == [0, -getattr(signal, name)]
