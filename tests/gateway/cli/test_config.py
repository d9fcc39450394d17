"""Configuration and ledger for commands: faults are lines, and what was opened is closed."""

import errno
import os
from pathlib import Path

import pytest
import typer
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from gateway.cli.config import ledger_engine, ledger_reader, load_or_fail
from gateway.config.settings import parse


def settings(tmp_path: Path, more: str = ""):
    return parse(f"state_dir: {tmp_path / 'state'}\n{more}", name="x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory: name your file with --config"),
        ("nonsense: 1", "nonsense"),
        ("[", "not YAML"),
    ],
)
def test_a_file_with_a_fault_ends_the_command_with_its_name(tmp_path, capsys, content, said):
    path = tmp_path / "the-file.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(typer.Exit) as caught:
        load_or_fail(path)
    assert caught.value.exit_code == 1
    error = capsys.readouterr().err
    assert "the-file.yaml" in error
    assert said in error


def test_a_file_that_is_not_there_names_the_one_of_an_earlier_start(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for made in (False, True):
        if made:
            Path(".breakeven").mkdir()
            Path(".breakeven/up.yaml").touch()
        with pytest.raises(typer.Exit):
            load_or_fail(Path("breakeven.yaml"))
        assert ("--config .breakeven/up.yaml" in capsys.readouterr().err) is made


def test_the_ledger_for_writing_is_made_and_brought_up(tmp_path):
    with ledger_engine(settings(tmp_path)) as engine:
        assert "attempts" in inspect(engine).get_table_names()


def test_the_reader_cannot_write(tmp_path):
    with ledger_engine(settings(tmp_path)):
        pass
    with (
        ledger_reader(settings(tmp_path)) as engine,
        engine.connect() as connection,
        pytest.raises(OperationalError, match="readonly"),
    ):
        connection.execute(text("DELETE FROM attempts"))


def test_a_missing_ledger_is_said_and_not_made(tmp_path, capsys):
    with pytest.raises(typer.Exit), ledger_reader(settings(tmp_path)):
        pass
    assert "there is no ledger" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_ledger_elsewhere_is_found_there(tmp_path):
    elsewhere = settings(tmp_path, f"ledger: {{url: 'sqlite:///{tmp_path}/books.db'}}")
    with ledger_engine(elsewhere):
        pass
    with ledger_reader(elsewhere) as engine, engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM attempts")).scalar_one() == 0
    (tmp_path / "books.db").unlink()
    with pytest.raises(typer.Exit), ledger_reader(elsewhere):
        pass


@pytest.mark.parametrize("opened", [ledger_engine, ledger_reader])
def test_a_url_that_the_environment_lacks_is_said(tmp_path, capsys, monkeypatch, opened):
    monkeypatch.delenv("BOOKS_URL", raising=False)
    with pytest.raises(typer.Exit), opened(settings(tmp_path, "ledger: {url_env: BOOKS_URL}")):
        pass
    assert "`BOOKS_URL` is not set" in capsys.readouterr().err


def test_a_file_in_a_folder_that_may_not_be_read_is_one_line(tmp_path, capsys, monkeypatch):
    """Looking for another one ended in a traceback."""
    path = tmp_path / "breakeven.yaml"

    def refused(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(typer.Exit):
        load_or_fail(path)
    assert capsys.readouterr().err == f"breakeven: {path}: Permission denied\n"
