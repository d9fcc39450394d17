"""`breakeven up`: from nothing to a served request; here on a machine that cannot have the engine.

Such a machine is made of any: pip may look in no index and no folder, so it finds no torch.
"""

import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from deploy import once
from deploy.quietports import find_quiet_port
from gateway.config.settings import Settings, parse
from gateway.config.starter import StarterPorts
from gateway.config.statedir import hold
from gateway.errors import ConfigError
from gateway.host.start import StartSequence, development_key, needs_engine
from ledger.database import migrate, sqlite_url

PLACE = re.compile(r"http://127\.0\.0\.1:\d+/v1")


def words(*more: str) -> list[str]:
    gateway, dashboard = find_quiet_port(), find_quiet_port()
    return ["up", "--port", str(gateway), "--dashboard-port", str(dashboard), *more]


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """No GPU's tools on PATH, no place to install from, no provider key."""
    empty = tmp_path / "no-programs"
    empty.mkdir()
    return {
        "PATH": str(empty),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
    }


@pytest.fixture
def started(tmp_path: Path) -> None:
    """An earlier start left its ledger: migrated, with prices."""
    once.put_started_ledger(tmp_path / ".breakeven" / "ledger.db")


def test_the_simulated_engine_serves_and_a_second_start_keeps_the_key_and_dies_outright(
    run_command, nowhere
):
    command = run_command(*words(), **nowhere)
    command.until(r"wherever it shows: the engine, provider(?s:.*)Ctrl-C stops everything")
    said = command.said
    assert said.count("No vLLM here: no torch==") == 1
    assert "The SIMULATED engine takes its place. Add the real one with:\n    breakeven " in said
    assert "SIMULATED here, and labelled wherever it shows: the engine, provider" in said
    assert "NOT used" not in said

    curl = re.search(r"(?m)^curl (?:.*\\\n)+.*\n.*\}\]\}'", said)[0]
    answer = subprocess.run(
        ["bash", "-c", curl.replace("curl ", "curl -sSi ", 1)],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    assert answer.startswith("HTTP/1.1 200")
    assert re.search(r"x-breakeven-backend: pool:tiny|x-breakeven-backend: standin", answer)

    dashboard = re.search(r"Dashboard  (http://\S+)", said)[1]
    assert httpx.get(dashboard + "/_stcore/health", trust_env=False).text == "ok"
    command.until(r"The engine answers\. Where the time went:(?s:.*) total")
    assert command.interrupt() == 0
    assert "Traceback" not in command.said
    assert command.left_behind() == []

    key = re.search(r"Key        (gw_\S+)", said)[1]
    second = run_command(*words(), **nowhere)
    assert second.until(r"Key        (gw_\S+)")[1] == key
    assert second.said.count("-> gateway and dashboard answer") == 1  # it knows what to serve with
    place = second.until(PLACE.pattern)[0]
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{place}/models", headers=headers, trust_env=False).is_success
    assert len(second.left_behind()) > 3  # the look finds them while they run
    second.process.send_signal(signal.SIGKILL)
    second.process.wait()
    deadline = time.monotonic() + 60
    while second.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert second.left_behind() == []


def drip(visitor: socket.socket) -> None:
    """A byte at a time, so that no timeout of silence ends the wait."""
    with suppress(OSError):  # the visitor is gone
        visitor.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        while True:
            visitor.sendall(b"1\r\n \r\n")
            time.sleep(0.2)


@pytest.mark.usefixtures("started")
def test_gateway_and_dashboard_wait_for_nothing_about_the_engine(run_command, nowhere):
    """pip is held by an index whose answer never ends; Ctrl-C then ends it, too."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(60)
        place = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        environ = {**nowhere, "PIP_NO_INDEX": "0", "PIP_INDEX_URL": place}
        command = run_command(*words(), **environ)
        visitor, _ = index.accept()
        with visitor:
            threading.Thread(target=drip, args=(visitor,), daemon=True).start()
            key = command.until(r"Key        (gw_\S+)")[1]
            place = command.until(PLACE.pattern)[0]
            answer = httpx.post(
                f"{place}/completions", json={"model": "tiny", "prompt": "a", "max_tokens": 4},
                headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=30,
            )  # fmt: skip
            assert answer.headers["x-breakeven-backend"] == "standin/tiny"
            assert command.interrupt() == 0
    assert "No vLLM here" not in command.said
    assert command.left_behind() == []


@pytest.mark.usefixtures("started")
def test_a_port_that_is_taken_is_said_in_one_line(run_command, nowhere):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = run_command("up", "--port", str(port), **nowhere)
        command.until(rf"server\.port: cannot listen on 127\.0\.0\.1:{port}")
        assert command.process.wait(60) != 0
    assert "Traceback" not in command.said
    assert command.left_behind() == []


@pytest.mark.usefixtures("no_index")
async def test_a_second_start_leaves_what_the_first_runs_on_as_it_is(tmp_path, monkeypatch):
    """It wrote the running one's configuration anew, and built an engine where that one built."""
    monkeypatch.chdir(tmp_path)
    held = hold(Settings())
    said: list[str] = []
    second = StartSequence(
        None, keys=True, ports=StarterPorts(9, 10), say=said.append, report=lambda _: None,
        environ={"OPENAI_API_KEY": "sk-none"},
    )  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        await second.run()
    assert "is in use by another `breakeven`" in refused.value.faults[0]
    assert not (tmp_path / ".breakeven" / "up.yaml").exists()
    assert said == []
    held.release()


def test_ports_belong_to_a_configuration_of_ones_own(run_command, tmp_path):
    (tmp_path / "own.yaml").write_text("state_dir: state\n")
    command = run_command("up", "--config", "own.yaml", "--port", "1")
    command.until(r"the ports are own\.yaml's")
    assert command.process.wait(60) != 0


VLLM = "{kind: vllm, model: m, served_name: m%s}"


@pytest.mark.parametrize(
    ("engine", "needed"),
    [
        (VLLM % ", replicas: 1", True),
        (VLLM % ", replicas: 1, environment: /elsewhere", False),
        (VLLM % ', endpoints: ["http://10.0.0.5:8000/v1"]', False),
        ("{kind: simulated, model: h200-llama-3.1-8b-fp8, replicas: 1}", False),
    ],
)
def test_only_engines_that_it_starts_here_need_an_installation(engine, needed):
    settings = parse(f"pools: {{p: {{engine: {engine}, gpu: {{type: CPU}}}}}}", name="x")
    assert needs_engine(settings) is needed


def test_the_development_key_is_made_once_and_is_its_owners(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    settings = parse(f"state_dir: {tmp_path}", name="x")
    token = development_key(settings, url)
    assert token.startswith("gw_")
    assert development_key(settings, url) == token
    assert stat.S_IMODE((tmp_path / "dev-key").stat().st_mode) == 0o600
