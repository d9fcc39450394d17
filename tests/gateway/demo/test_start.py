"""`breakeven demo`: a replayed month, then live traffic, and nothing left when it ends."""

import re
from pathlib import Path

import httpx
import pytest
import sqlalchemy

from deploy.quietports import find_quiet_port
from gateway.config.settings import Settings, load
from gateway.config.starter import USUAL_PORTS, StarterPorts
from gateway.config.statedir import hold
from gateway.demo.start import fresh_state
from gateway.errors import ConfigError
from ledger.database import open_readonly, sqlite_url
from ledger.identity.people import AccessFile, DashboardRole


@pytest.fixture
def ports() -> StarterPorts:
    return StarterPorts(find_quiet_port(), find_quiet_port())


def test_the_demos_engines_move_with_its_ports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load(fresh_state(StarterPorts(9000, 9001, 9002)))
    (pool,) = settings.pools.values()
    assert (settings.server.port, settings.dashboard.port, pool.engine.port) == (9000, 9001, 9002)


def test_whoever_opens_the_demo_here_is_its_finance_person(ports, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load(fresh_state(ports))
    access = AccessFile(Path(settings.dashboard.access_file)).read()
    assert access.find(access.here).role is DashboardRole.FINANCE
    assert settings.dashboard.host == "127.0.0.1"


def test_ctrl_c_ends_a_demo_that_is_still_replaying(run_command, ports):
    words = ("demo", "--port", str(ports.gateway), "--dashboard-port", str(ports.dashboard))
    command = run_command(*words)
    command.until(r"-> 30 past days replayed")
    assert command.interrupt() == 0
    assert "gateway and dashboard answer" not in command.said
    assert "Traceback" not in command.said
    assert command.left_behind() == []


def test_the_demo_replays_a_month_and_then_lives(run_command, ports, tmp_path):
    words = ("demo", "--port", str(ports.gateway), "--dashboard-port", str(ports.dashboard))
    command = run_command(*words)
    command.until(r"Live: simulated traffic at its real pace\.\n(?s:.*) total")
    shown = f"http://127.0.0.1:{ports.dashboard}"
    assert f"Dashboard  {shown}" in command.said
    assert "SIMULATED here, and labelled wherever it shows: the engine" in command.said
    assert httpx.get(shown + "/_stcore/health", trust_env=False).text == "ok"

    key = re.search(r"Key        (gw_\S+)", command.said)[1]
    answer = httpx.post(
        f"http://127.0.0.1:{ports.gateway}/v1/chat/completions",
        json={"model": "chat", "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]},
        headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=60,
    )  # fmt: skip
    assert answer.is_success
    assert command.interrupt() == 0
    assert "Traceback" not in command.said
    assert command.left_behind() == []

    books = open_readonly(sqlite_url(tmp_path / ".breakeven" / "demo" / "ledger.db"))
    with books.connect() as connection:
        ask = sqlalchemy.text
        days, attempts = connection.execute(
            ask("SELECT count(DISTINCT opened_us / 86400000000), count(*) FROM attempts")
        ).one()
        real = connection.execute(ask("SELECT count(*) FROM attempts WHERE NOT simulated"))
        spilled = connection.execute(
            ask("SELECT count(*) FROM attempts WHERE backend = 'api' AND spill_reason IS NOT NULL")
        )
        this_one = connection.execute(
            ask("SELECT count(*) FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"),
            {"id": answer.headers["x-request-id"]},
        )
        counted, costs = connection.execute(
            ask(
                "SELECT w.spent_pusd, (SELECT sum(cost_pusd) FROM attempts"
                ' WHERE opened_us >= w."window" * 1000000) FROM budget_windows w'
                " WHERE w.budget_id = 'global@month' ORDER BY w.\"window\" DESC LIMIT 1"
            )
        ).one()
        assert int(counted) == int(costs) > 0
        assert days in (30, 31)
        assert attempts > 1_000
        assert real.scalar_one() == 0
        assert spilled.scalar_one() > 0
        assert this_one.scalar_one() == 1
    books.dispose()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_start_is_fresh_and_keeps_what_is_not_the_demos(here, ports):
    demo, own = here / ".breakeven" / "demo", here / ".breakeven" / "ledger.db"
    demo.mkdir(parents=True)
    (demo / "ledger.db").write_text("last time's")
    own.write_text("a person's own")
    settings = load(fresh_state(ports))
    assert (settings.server.port, settings.dashboard.port) == (ports.gateway, ports.dashboard)
    assert settings.state.resolve() == demo
    assert not demo.exists()
    assert own.read_text() == "a person's own"


def test_a_demo_that_runs_keeps_its_ledger(here, ports):
    demo = here / ".breakeven" / "demo"
    demo.mkdir(parents=True)
    (demo / "ledger.db").write_text("in use")
    held = hold(Settings(state_dir=str(demo)))
    with pytest.raises(ConfigError) as caught:
        fresh_state(ports)
    held.release()
    assert f"{demo} is in use" in caught.value.faults[0]
    assert (demo / "ledger.db").read_text() == "in use"


@pytest.mark.usefixtures("here")
def test_the_demo_names_the_usual_ports():
    settings = load(fresh_state(USUAL_PORTS))
    assert StarterPorts(settings.server.port, settings.dashboard.port) == USUAL_PORTS
