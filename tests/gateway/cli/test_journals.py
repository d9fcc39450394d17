"""Findings, salvage and drain at the command line: shown, done, entered, and done once."""

import json
import os
from pathlib import Path

import pytest
from sqlalchemy import func, select
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.config.settings import load
from gateway.config.statedir import hold
from ledger.database import make_engine, migrate, sqlite_url
from ledger.journals.homes import FOLDER
from ledger.journals.journal import JournalWriter
from ledger.journals.layout import HEADER_BYTES
from ledger.journals.records import RequestRefused
from ledger.orm import tables as orm

RECORDS = 20


@pytest.fixture
def cli(tmp_path: Path):
    config = tmp_path / "breakeven.yaml"
    config.write_text(f"state_dir: {tmp_path / 'state'}\n")

    def run(*words: str):
        result = CliRunner().invoke(app, ["ledger", *words, "--config", str(config)])
        return result.exit_code, result.stdout if "--json" in words else result.output

    return run


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    """A journal of a killed worker, in which one bit of the tenth record's length is wrong."""
    directory = tmp_path / "state" / "journal"
    writer = JournalWriter(directory, "worker-0")
    for number in range(RECORDS):
        if number == 10:
            place = HEADER_BYTES + writer._offset + 6
        writer.append(RequestRefused(f"r{number}", number, "k", "t", "o", "m", "p", "budget", 429))
    writer._mark.close()
    for file in (writer._file, writer._holder):
        os.close(file)
    (path,) = (directory / FOLDER / writer.name).glob("*.segment")
    data = bytearray(path.read_bytes())
    data[place] ^= 8
    path.write_bytes(data)
    return directory


def refusals(tmp_path: Path) -> int:
    engine = make_engine(sqlite_url(tmp_path / "state" / "ledger.db"))
    with engine.connect() as connection:
        count = connection.execute(select(func.count()).select_from(orm.RefusalRow)).scalar_one()
    engine.dispose()
    return count


def test_drained_found_salvaged_and_acknowledged(cli, tmp_path, journals) -> None:
    status, said = cli("drain", "--json")
    assert (status, json.loads(said)) == (0, {"journals": 1, "left": 0})
    assert refusals(tmp_path) == RECORDS - 1
    assert not (journals / FOLDER).exists()

    status, said = cli("verify", "--json")
    assert status == 1
    (found,) = json.loads(said)["findings"]
    assert "may lack 1 records after record 10, an unknown amount" in found["message"]
    status, said = cli("findings", "--json")
    (listed,) = json.loads(said)
    assert (listed["place"], listed["missing"], listed["at_most_usd"]) == (
        found["subject"],
        1,
        None,
    )

    status, said = cli("salvage", "--json")
    assert status == 0
    assert sum(each["new"] for each in json.loads(said)["sources"]) == 1
    assert refusals(tmp_path) == RECORDS - 1  # only shown
    status, said = cli("salvage", "--apply", "--yes", "--by", "ann", "--json")
    assert json.loads(said)["applied"] == {"attempts": 0, "settled": 0, "refusals": 1}
    assert refusals(tmp_path) == RECORDS
    status, said = cli("salvage", "--apply", "--json")
    assert json.loads(said)["applied"] == {"attempts": 0, "settled": 0, "refusals": 0}

    assert cli("verify")[0] == 1  # what was brought back is still to be seen
    status, said = cli("acknowledge", "w:1:1")
    assert status == 1
    assert "no open finding at w:1:1" in said
    assert cli("acknowledge")[0] == 1
    status, said = cli("acknowledge", listed["place"], "--by", "ann", "--note", "a bad disk")
    assert (status, said.strip()) == (0, "1 finding acknowledged by ann.")
    assert cli("verify")[0] == 0
    assert json.loads(cli("findings", "--json")[1]) == []


def test_every_finding_at_once(cli, journals) -> None:
    cli("drain")
    assert cli("acknowledge", "--all", "--yes")[0] == 0
    assert cli("verify")[0] == 0
    assert cli("acknowledge", "--all", "--yes") == (0, "No finding is open.\n")


def test_a_copy_that_cannot_be_read_is_named(cli, tmp_path, journals, monkeypatch) -> None:
    cli("drain")
    (home,) = (journals / "damaged").iterdir()
    (home / "notes.txt").write_text("by a person")
    assert cli("salvage")[0] == 0

    def fail(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr("ledger.salvage.read_remains", fail)
    status, said = cli("salvage", "--apply", "--yes")
    assert status == 1
    assert f"{home}/000000000001.segment cannot be read: Input/output error" in said
    assert refusals(tmp_path) == RECORDS - 1


def test_a_host_that_runs_is_not_drained(cli, tmp_path, journals) -> None:
    held = hold(load(tmp_path / "breakeven.yaml"))
    try:
        status, said = cli("drain")
    finally:
        held.release()
    assert status == 1
    assert "is in use by another" in said
    assert (journals / FOLDER).exists()


def test_what_cannot_be_drained_is_named(cli, tmp_path, journals, monkeypatch) -> None:
    def fail(*_, **__):
        raise OSError(5, "Input/output error", "segment")

    monkeypatch.setattr("ledger.journals.reader.JournalReader.read", fail)
    status, said = cli("drain")
    assert status == 1
    assert "not completely in the ledger" in said.replace("\n", " ")
    assert "Input/output error: segment. Put that right, then drain again." in said
    monkeypatch.undo()
    assert cli("drain")[0] == 0
    assert refusals(tmp_path) == RECORDS - 1


def test_nothing_to_drain_is_well(cli) -> None:
    status, said = cli("drain")
    assert (status, said.strip()) == (0, "0 journals are in the books; none is left.")


def test_a_ledger_without_damage_has_nothing_to_salvage(cli, tmp_path) -> None:
    migrate(sqlite_url(tmp_path / "ledger.db"))
    status, said = cli("salvage", "--json")
    assert (status, json.loads(said)) == (0, {"sources": []})
