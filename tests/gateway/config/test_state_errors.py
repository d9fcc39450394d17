"""What the ledger refuses is one line with its setting; anything else stays what it is."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from gateway.config.settings import Settings
from gateway.config.state_errors import translate_state_errors
from gateway.errors import ConfigError
from ledger.database import DatabaseError


def settings(tmp_path: Path, **ledger: str) -> Settings:
    return Settings.model_validate({"state_dir": str(tmp_path / "state"), "ledger": ledger})


def refuse() -> None:
    raise OperationalError("SELECT 1", None, sqlite3.OperationalError("no such table: keys"))


def test_a_file_of_another_version_is_one_line_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught, translate_state_errors(settings(tmp_path)):
        refuse()
    (said,) = caught.value.faults
    assert said.startswith(f"state_dir: the ledger {tmp_path / 'state' / 'ledger.db'} cannot be")
    assert said.endswith("`breakeven serve` brings it up to this one")


def test_a_server_is_not_named_by_a_directory(tmp_path: Path) -> None:
    elsewhere = settings(tmp_path, url_env="LEDGER")
    with pytest.raises(DatabaseError, match="no such table"), translate_state_errors(elsewhere):
        refuse()


def test_what_the_disk_refuses_is_a_fault_too(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="state_dir: "),
        translate_state_errors(settings(tmp_path)),
    ):
        (tmp_path / "state" / "none").touch()


def test_what_works_is_not_touched(tmp_path):
    with translate_state_errors(settings(tmp_path)):
        pass
    with pytest.raises(ValueError, match="other"), translate_state_errors(settings(tmp_path)):
        raise ValueError("other")
