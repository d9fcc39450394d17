"""Records to apply, and a migrated database, for every test of the ledger."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url

from ledger.database import make_engine, migrate, sqlite_url
from ledger.records import AttemptOpened, AttemptSettled, Hold, RequestRefused, Tokens

NOON_US = 1_780_000_000_000_000


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    migrate(sqlite_url(path))
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server) -> str:
    name: str = postgres_server.create("migrated")
    migrate(postgres_server.url(name))
    return name


@pytest.fixture
def engine(database_url: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Migrated, as a copy: to migrate anew for each test took a third of all tests' time here."""
    name = make_url(database_url).database
    if database_url.startswith("sqlite"):
        shutil.copyfile(request.getfixturevalue("migrated_sqlite"), name)
    else:
        server = request.getfixturevalue("postgres_server")
        server.drop(name)
        server.create(name, request.getfixturevalue("migrated_postgres"))
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def opened() -> Callable[..., AttemptOpened]:
    def make(number: int = 1, **changes: object) -> AttemptOpened:
        fields: dict[str, object] = {
            "attempt_id": f"r{number}.1",
            "request_id": f"r{number}",
            "attempt_no": 1,
            "opened_us": NOON_US + number,
            "key_id": "k1",
            "user_id": None,
            "team_id": "search",
            "org_id": "acme",
            "kind": "chat",
            "stream": True,
            "model": "chat-large",
            "target": "openai/gpt-4o-mini",
            "backend": "api",
            "pool": None,
            "engine": None,
            "provider": "openai",
            "upstream_model": "gpt-4o-mini",
            "simulated": False,
            "policy": "default",
            "policy_version": "v1",
            "reason": "cheapest",
            "spill_reason": None,
            "price_version": 1,
            "bound_pusd": 1_000,
            "prompt_tokens_estimate": 12,
            "holds": (Hold("team:search@month", 1_778_000_000, 1_000),),
            "tags": (("app", "web"),),
            "decision": b"\x80",
        }
        return AttemptOpened(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def settled() -> Callable[..., AttemptSettled]:
    def make(number: int = 1, **changes: object) -> AttemptSettled:
        fields: dict[str, object] = {
            "attempt_id": f"r{number}.1",
            "settled_us": NOON_US + 1_000_000 + number,
            "status": "finished",
            "http_status": 200,
            "tokens": Tokens(input=10, cached=2, output=5),
            "basis": "reported",
            "cost_pusd": 400,
            "ttft_us": 120_000,
            "duration_us": 900_000,
            "finish_reason": "stop",
        }
        return AttemptSettled(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def refused() -> Callable[..., RequestRefused]:
    def make(number: int = 1) -> RequestRefused:
        return RequestRefused(
            request_id=f"x{number}",
            refused_us=NOON_US + number,
            key_id="k1",
            team_id="search",
            org_id="acme",
            model="chat-large",
            policy="default",
            reason="budget",
            http_status=429,
            scope="team:search@month",
        )

    return make
