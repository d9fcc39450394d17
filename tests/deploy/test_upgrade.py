"""An upgrade with a migration in its middle, as the chart does it: the schema, then the hosts.

The next version is this one and one migration more; what serves and starts meanwhile is this one.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from sqlalchemy import inspect, text

from deploy import parts
from ledger.database import make_engine
from ledger.identity.keys import KeySpec, create_key, load_pepper

ROOT = Path(__file__).resolve().parents[2]
NEXT = """
from alembic import op
import sqlalchemy as sa

revision, down_revision = "9999", "{head}"

def upgrade():
    op.add_column("attempts", sa.Column("weather", sa.Text()))
    op.create_table("moods", sa.Column("id", sa.Integer, primary_key=True))
"""
MIGRATES = "import ledger.database as d, pathlib, sys; \
d._scripts = lambda: pathlib.Path(sys.argv[1]); d.migrate(sys.argv[2])"
CONFIG = {
    "models": {"chat": {"targets": ["standin/gpt-4o-mini"]}},
    "providers": {"standin": {"start": True, "simulated": True, "prices_as": "openai/gpt-4o-mini"}},
}


@pytest.fixture
def ledger_url(postgres_server):
    server = type(postgres_server)(parts.find_postgres(), durable=True)
    yield server.url(server.create())
    server.stop()


@pytest.fixture
def next_version(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "migrations", folder)
    head = max(path.name.partition("_")[0] for path in (folder / "versions").glob("[0-9]*.py"))
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(head=head))
    return folder


class Caller:
    """Asks with one key, which every host knows by the pepper that they share."""

    def __init__(self, url: str, pepper: bytes) -> None:
        self.engine = make_engine(url)
        with self.engine.begin() as connection:
            self.token = create_key(connection, KeySpec("test"), pepper=pepper, now_us=1).token

    def asks(self, host) -> None:
        answer = httpx.post(
            f"{host.base_url}/chat/completions", trust_env=False, timeout=60,
            headers={"authorization": f"Bearer {self.token}"},
            json={"model": "chat", "messages": [{"role": "user", "content": "?"}], "max_tokens": 3},
        )  # fmt: skip
        assert answer.status_code == 200, answer.text

    def finished(self) -> int:
        query = text("SELECT count(*) FROM attempts WHERE status = 'finished'")
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def until_finished(self, count: int) -> None:
        deadline = time.monotonic() + 120
        while self.finished() != count:
            assert time.monotonic() < deadline, f"{self.finished()} of {count}"
            time.sleep(0.05)


def test_old_hosts_serve_and_start_on_the_next_versions_schema(
    ledger_url: str, next_version: Path, tmp_path: Path, serve
) -> None:
    config = {**CONFIG, "ledger": {"url": ledger_url}}
    host = serve(config)
    caller = Caller(ledger_url, load_pepper(host.state))
    caller.asks(host)
    command = [sys.executable, "-c", MIGRATES, str(next_version), ledger_url]
    subprocess.run(command, check=True, cwd=ROOT)
    assert "moods" in inspect(caller.engine).get_table_names()
    caller.asks(host)  # it was there before
    caller.until_finished(2)
    assert host.stop() == 0

    state = tmp_path / "state"  # and one that begins after it, with the pepper that both share
    state.mkdir()
    shutil.copy(host.state / "pepper", state / "pepper")
    again = serve({**config, "state_dir": str(state)})
    caller.asks(again)
    caller.until_finished(3)
    assert again.stop() == 0
    assert "moods" in inspect(caller.engine).get_table_names()
    caller.engine.dispose()
