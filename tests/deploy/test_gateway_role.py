"""The PostgreSQL role for the gateway's hosts: it serves and bills, and changes no table's shape.

The way of the chart: a role that owns the tables migrates, a host that may not starts afterwards.
"""

import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import ProgrammingError

from deploy import parts, warmstart
from ledger.database import make_engine, migrate
from ledger.identity.keys import KeySpec, create_key, load_pepper

FILE = Path(__file__).resolve().parents[2] / "deploy" / "postgres-gateway.sql"
CONFIG = {
    "ledger": {"url_env": "BREAKEVEN_LEDGER_URL"},
    "models": {"chat": {"targets": ["standin/gpt-4o-mini"]}},
    "providers": {"standin": {"start": True, "simulated": True, "prices_as": "openai/gpt-4o-mini"}},
    "budgets": [{"scope": "global", "usd": 5, "period": "day", "hard": True}],
}


@pytest.fixture(scope="module")
def durable(postgres_server):
    """A server that flushes: on another one a gateway does not begin."""
    server = type(postgres_server)(parts.find_postgres(), durable=True)
    yield server
    server.stop()


@pytest.fixture
def postgres_url(durable):
    """An empty database of it."""
    name = durable.create()
    yield durable.url(name)
    durable.drop(name)


@contextmanager
def role_of(postgres_url: str):
    """As `psql` would run the file on an empty database, for a role that no other test has."""
    name = f"gateway_{make_url(postgres_url).database}"
    script = re.sub(r"--.*", "", FILE.read_text(encoding="utf-8"))
    script = script.replace(":gateway", f'"{name}"').replace(":password", "'a password'")
    engine = make_engine(postgres_url)
    with engine.begin() as connection:
        for statement in filter(str.strip, script.split(";")):
            connection.execute(text(statement))
    url: URL = make_url(postgres_url).set(username=name, password="a password")
    yield url.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.execute(text(f'DROP OWNED BY "{name}"'))
        connection.execute(text(f'DROP ROLE "{name}"'))
    engine.dispose()


@pytest.fixture
def role_url(postgres_url: str):
    with role_of(postgres_url) as url:
        yield url


@pytest.fixture(scope="module")
def bound_engine(durable):
    """The role's, at tables that their owner made: a refused statement leaves them as they are."""
    name = durable.create()
    with role_of(durable.url(name)) as url:
        migrate(durable.url(name))
        engine = make_engine(url)
        yield engine
        engine.dispose()
    durable.drop(name)


def migrated_as(url: str) -> subprocess.CompletedProcess[str]:
    """As the chart's Job does."""
    environ = {"BREAKEVEN_LEDGER_URL": url, "PATH": "/usr/bin:/bin"}
    return warmstart.programs().run(["ledger", "migrate"], environ=environ)


def test_a_host_serves_and_bills_with_it(postgres_url: str, role_url: str, serve) -> None:
    assert migrated_as(postgres_url).returncode == 0
    host = serve(CONFIG, {"BREAKEVEN_LEDGER_URL": role_url})
    engine = make_engine(role_url)
    with engine.begin() as connection:
        made = create_key(connection, KeySpec("test"), pepper=load_pepper(host.state), now_us=1)
    answer = httpx.post(
        f"{host.base_url}/chat/completions", trust_env=False, timeout=60,
        headers={"authorization": f"Bearer {made.token}"},
        json={"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert float(answer.headers["x-breakeven-cost-usd"]) > 0

    def booked() -> bool:
        with engine.connect() as connection:
            count = connection.execute(text("SELECT count(*) FROM postings")).scalar_one()
        return bool(count)

    host.until(booked, 60)
    assert host.stop() == 0
    engine.dispose()


def test_control_without_the_job_it_cannot_begin(role_url: str) -> None:
    answer = migrated_as(role_url)
    assert answer.returncode == 1
    assert "permission denied" in answer.stderr
    assert "a password" not in answer.stderr


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE keys", "CREATE TABLE x (y int)", "ALTER TABLE keys ADD COLUMN x int",
     "TRUNCATE postings", "CREATE INDEX x ON keys (name)"],
)  # fmt: skip
def test_no_table_changes_its_shape_by_it(bound_engine, statement: str) -> None:
    with bound_engine.connect() as connection, pytest.raises(ProgrammingError) as raised:
        connection.execute(text(statement))
    assert re.search("permission denied|must be owner", str(raised.value))
