"""Where the ledger is, and no word of its password."""

import traceback
from pathlib import Path

import pytest

from gateway.config.ledger_address import database_of, ledger_url
from gateway.config.settings import parse
from gateway.errors import ConfigError


def test_where_the_ledger_is(tmp_path: Path) -> None:
    base = f"state_dir: {tmp_path}\n"
    assert ledger_url(parse(base, name="t"), {}) == f"sqlite:///{tmp_path}/ledger.db"
    by_url = parse(base + "ledger: {url: 'postgresql://x/y'}", name="t")
    assert ledger_url(by_url, {}) == "postgresql://x/y"
    by_name = parse(base + "ledger: {url_env: DB}", name="t")
    assert ledger_url(by_name, {"DB": "sqlite:////z"}) == "sqlite:////z"
    assert ledger_url(by_name, {"DB": "sqlite:////z\r\n"}) == "sqlite:////z"
    for value in ("", "\n"):
        with pytest.raises(ConfigError, match="`DB` is not set"):
            ledger_url(by_name, {"DB": value})


@pytest.mark.parametrize(
    "value", ["\ufeffpostgresql://me:hunter2@db/x", "hunter2", "postgresql://me:pa@ss:hunter2@db/x"]
)
def test_an_address_that_is_none_is_told_by_its_variable_alone(tmp_path: Path, value: str) -> None:
    """It ended in a traceback, which quoted what of a password it took for a port."""
    by_name = parse(f"state_dir: {tmp_path}\nledger: {{url_env: DB}}", name="t")
    with pytest.raises(ConfigError, match="`DB` must hold one address") as raised:
        ledger_url(by_name, {"DB": value})
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("sqlite:///ledger.db", "sqlite"),
        ("postgresql+psycopg://user@host/name", "postgresql"),
        ("ledger.db", ""),
        ("postgresql://me:pa@ss:word@db/x", ""),
    ],
)
def test_the_database_of_an_address(url: str, database: str) -> None:
    assert database_of(url) == database
