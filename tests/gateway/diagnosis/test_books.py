"""Ledgers that are away, behind, ahead, not durable, or of another time."""

import json
import time

import pytest
from sqlalchemy import text

from gateway.config.settings import parse
from gateway.diagnosis import books
from gateway.diagnosis.books import look_at_books
from ledger.database import make_engine, migrate, sqlite_url

SECRET = "s3cret-of-the-database"


def settings(**ledger: object):
    config = {
        "ledger": ledger,
        "models": {"m": {"targets": ["openai/x"]}}, "providers": {"openai": {}},
    }  # fmt: skip
    return parse(json.dumps(config), name="test")


def look(url: str, **more: object) -> dict[str, tuple[str, str]]:
    found = look_at_books(settings(url_env="URL"), {"URL": url}, **more)
    return {finding.subject: (finding.verdict.value, finding.words) for finding in found}


@pytest.fixture
def url(tmp_path) -> str:
    found = sqlite_url(tmp_path / "ledger.db")
    migrate(found)
    return found


def test_a_ledger_as_it_should_be(url) -> None:
    found = look(url)
    assert {subject: verdict for subject, (verdict, _) in found.items()} == {
        "ledger": "ok", "durability": "ok", "clock": "ok",
    }  # fmt: skip


@pytest.mark.parametrize(("revision", "words"), [("0001", "migrate"), ("9999", "upgrade")])
def test_another_schema_is_a_warning(url, revision, words) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})
    engine.dispose()
    found = next(look_at_books(settings(url_env="URL"), {"URL": url}))
    assert found.verdict.value == "warning"
    assert revision in found.words
    assert words in found.fix


def test_a_database_that_is_away_is_an_error_and_its_password_is_not_told() -> None:
    found = look(f"postgresql://user:{SECRET}@127.0.0.1:1/books")
    verdict, words = found["ledger"]
    assert verdict == "error"
    assert "127.0.0.1" in words
    assert SECRET not in words


def test_a_variable_that_is_not_set_is_named() -> None:
    (found,) = look_at_books(settings(url_env="URL"), {})
    assert (found.verdict.value, "`URL` is not set" in found.words) == ("error", True)


def test_a_file_that_is_not_there_is_not_made(tmp_path) -> None:
    assert look(sqlite_url(tmp_path / "none.db"))["ledger"][0] == "note"
    assert not (tmp_path / "none.db").exists()


def test_clocks_that_differ_are_a_warning(url) -> None:
    found = look(url, now_us=lambda: time.time_ns() // 1000 + 10_000_000)
    assert found["clock"][0] == "warning"


def test_what_may_lose_a_commit_is_an_error(url, monkeypatch) -> None:
    def refuse(_: object) -> None:
        raise books.NotDurable("fsync=off")

    monkeypatch.setattr(books, "check_durable", refuse)
    assert look(url)["durability"] == ("error", "fsync=off")
