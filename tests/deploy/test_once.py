"""What is made once for all tests of a process is what each would have made by itself."""

import importlib
import inspect
import sqlite3
import ssl
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Annotated

import certifi
import fastapi
import httpx
import pydantic
import pytest
import sqlalchemy as sa

from deploy import once
from ledger import database
from ledger.database import make_engine, migrate, sqlite_url
from ledger.orm import tables as orm
from ledger.prices import bundled, stored
from ledger.prices.start_prices import read_sources, store_start_prices
from ledger.prices.stored import stored_prices
from ledger.seals.sealer import Sealer


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def test_the_ledger_is_one_that_was_migrated(tmp_path: Path) -> None:
    assert once.put_ledger(tmp_path / "state" / "ledger.db").endswith("/state/ledger.db")
    migrate.__wrapped__(sqlite_url(tmp_path / "own.db"))
    assert dump(tmp_path / "state" / "ledger.db") == dump(tmp_path / "own.db")
    assert len(dump(tmp_path / "own.db")) > 100


def test_lanes_make_a_ledger_once_and_one_that_broke_off_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "_folders", [])
    once.share_made(tmp_path)
    asked: list[str] = []

    def make(url: str) -> None:
        asked.append(url)
        Path(url.removeprefix("sqlite:///")).write_text("half" if len(asked) == 1 else "whole")
        if len(asked) == 1:
            raise OSError

    with pytest.raises(OSError):
        once._made("it", make)
    ledgers = [once._made("it", make) for _ in range(2)]
    assert len(asked) == 2
    assert ledgers == [tmp_path / "it.db"] * 2
    assert ledgers[0].read_text() == "whole"


def test_a_new_ledger_is_a_copy_and_one_that_is_there_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
    new, old = (sqlite_url(tmp_path / name / "ledger.db") for name in ("new", "old"))
    migrate(old, "0050")
    asked: list[str] = []
    command = importlib.import_module("alembic.command")
    upgrade = command.upgrade
    monkeypatch.setattr(
        command, "upgrade", lambda config, head: asked.append(head) or upgrade(config, head)
    )
    migrate(new)
    assert asked == []
    assert database.schema_of(new) is not None
    migrate(old)
    assert asked == ["head"]
    assert database.schema_of(old) == database.schema_of(new)
    files = [{path.name for path in (tmp_path / name).iterdir()} for name in ("new", "old")]
    assert files[0] == files[1]


def test_a_started_ledger_is_one_of_a_start(tmp_path: Path) -> None:
    """Its prices are those of a start, and the next start, and its seals, have nothing to do."""
    engines = [make_engine(once.put_started_ledger(tmp_path / "started.db"))]
    engines.append(make_engine(once.put_ledger(tmp_path / "own.db")))
    sources, now_us = read_sources(()), time.time_ns() // 1000
    started, own = (
        store_start_prices(engine, sources, actor="me", at_us=now_us).stored for engine in engines
    )
    assert started == 0
    assert own == len(stored_prices(engines[0]))
    assert stored_prices(engines[0]) == stored_prices(engines[1])
    assert Sealer(engines[0]).seal(at_us=now_us) == 0
    for engine in engines:
        engine.dispose()


def test_a_ledger_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"books")
    once.put_ledger(sqlite_url(path))
    assert path.read_bytes() == b"books"


def test_a_servers_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    once.put_ledger("postgresql://user@127.0.0.1:1/books")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_of_the_tests_becomes_a_started_ledger(postgres_server) -> None:
    """The second is a copy of the first, and one that is in use is left alone."""
    urls = [postgres_server.url(postgres_server.create()) for _ in range(2)]
    engines = [make_engine(once.put_started_ledger(url)) for url in urls]
    prices = [stored_prices(engine) for engine in engines]
    assert prices[0] == prices[1]
    assert len(prices[0]) > 100
    with engines[0].begin() as connection:
        connection.execute(sa.text("CREATE TABLE moods (id integer)"))
    for engine in engines:
        engine.dispose()
    once.put_started_ledger(urls[0])
    assert sa.inspect(engines[0]).has_table("moods")
    engines[0].dispose()


def test_the_seed_is_that_of_its_text_and_cannot_be_changed() -> None:
    seed = bundled.bundled_seed()
    assert bundled.bundled_seed() is seed, "read once"
    assert inspect.unwrap(bundled.seed_from_map) is not bundled.seed_from_map
    assert bundled.seed_from_map("{}", source_date=None).drafts == ()
    with pytest.raises(AttributeError):
        seed.drafts[0].name = "another"


def test_a_function_answers_once_for_each_of_its_arguments(monkeypatch) -> None:
    asked: list[int] = []
    module = ModuleType("asked_once")
    vars(module)["ask"] = asked.append
    monkeypatch.setitem(sys.modules, "asked_once", module)
    once.remember("asked_once", "ask")
    for number in (1, 2, 1):
        module.ask(number)
    assert asked == [1, 2]


def test_a_list_is_made_once_and_is_another_for_each(monkeypatch) -> None:
    asked: list[tuple[int, ...]] = []
    module = ModuleType("made_once")
    vars(module)["double"] = lambda values: asked.append(values) or [2 * each for each in values]
    monkeypatch.setitem(sys.modules, "made_once", module)
    once.remember_list("made_once", "double")
    module.double([1, 2]).append(5)
    assert module.double(iter([1, 2])) == [2, 4]
    assert asked == [(1, 2)]


def test_what_passed_is_judged_once_and_what_fails_each_time(monkeypatch) -> None:
    asked: list[object] = []
    module, schemas = ModuleType("judging"), ({"least": 1}, {"least": 3})

    def judge(spec: int, schema: dict[str, int], *, raise_error: bool) -> None:
        asked.append((spec, schema["least"]))
        if spec < schema["least"] and raise_error:
            raise ValueError(spec)

    vars(module)["judge"] = judge
    monkeypatch.setitem(sys.modules, "judging", module)
    once.remember_what_passed("judging", "judge")
    for spec, schema in ((2, schemas[0]), (2, schemas[0]), (3, schemas[1]), (3, schemas[0])):
        module.judge(spec, schema, raise_error=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="2"):
            module.judge(2, schemas[1], raise_error=True)
    assert asked == [(2, 1), (3, 3), (3, 1), (2, 3), (2, 3)]


def test_a_book_of_the_same_prices_is_the_same_one(tmp_path: Path) -> None:
    engine = make_engine(once.put_started_ledger(tmp_path / "ledger.db"))
    book = stored.load_price_book(engine)
    assert stored.load_price_book(engine) is book
    assert stored.load_price_book(engine, {"mine": "openai/gpt-4o"}) is not book
    with engine.begin() as connection:
        last = sa.select(sa.func.max(orm.PriceVersionRow.version)).scalar_subquery()
        gone = sa.delete(orm.PriceVersionRow).where(orm.PriceVersionRow.version == last)
        connection.execute(gone)
    assert len(stored.load_price_book(engine)) == len(book) - 1
    engine.dispose()


def test_applications_share_validators_and_answer_for_themselves() -> None:
    def served(least: int) -> fastapi.FastAPI:
        app = fastapi.FastAPI()

        @app.get("/")
        def answer(number: Annotated[int, fastapi.Query(ge=least)]) -> int:
            return number

        return app

    fields = [
        served(least).routes[-1].dependant.query_params[0]._type_adapter for least in (2, 2, 5)
    ]
    assert fields[0] is fields[1] is not fields[2]
    assert fields[1].validate_python(3) == 3
    with pytest.raises(pydantic.ValidationError):
        fields[2].validate_python(3)


def test_engines_share_what_they_compiled(tmp_path: Path) -> None:
    """Each database still answers for itself, and another kind of database shares nothing."""
    compiled: list[str] = []

    class CountedTable(sa.types.UserDefinedType):  # type: ignore[type-arg]  # of no value
        cache_ok = True

        def bind_expression(self, value: sa.BindParameter[str]) -> sa.BindParameter[str]:
            compiled.append("once more")
            return value

    query = sa.select(sa.bindparam("given", type_=CountedTable()))
    for name in ("a", "b"):
        engine = database.make_engine(sqlite_url(tmp_path / f"{name}.db"))
        with engine.connect() as connection:
            assert connection.execute(query, {"given": name}).scalar_one() == name
        engine.dispose()
    assert len(compiled) == 1
    servers = database.make_engine("postgresql://user@127.0.0.1:1/books")
    assert servers.dialect != engine.dialect


def test_authorities_are_read_once_for_who_trusts_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names certificates of their own, or serves, has a context that nobody shares."""
    shared = ssl.create_default_context()
    assert shared is ssl.create_default_context()
    clients = [httpx.Client(trust_env=False), httpx.Client(trust_env=False)]
    first, second = (client._transport._pool._ssl_context for client in clients)
    assert first is second is not shared
    own = tmp_path / "own.pem"
    own.write_bytes(Path(certifi.where()).read_bytes())
    assert ssl.create_default_context(cafile=own) is not ssl.create_default_context(cafile=own)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    assert served is not ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert ssl.create_default_context() is not shared
    named = ssl.create_default_context(cafile=str(own))
    assert named is ssl.create_default_context(cafile=str(own)) is not first
    for client in clients:
        client.close()


def test_what_writes_waits_for_no_disk_here(tmp_path: Path) -> None:
    """Who reads sees a ledger as it was opened: a host refuses one that would not wait."""
    engine = make_engine(sqlite_url(tmp_path / "ledger.db"))
    levels = []
    for connect in (engine.begin, lambda: database.reading(engine)):
        with connect() as connection:
            levels.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())
    assert levels == [0, 2]
    database.check_durable(engine)
    engine.dispose()
