"""Configuration and ledger for commands: faults are lines, and what was opened is closed."""

import errno
import os
from pathlib import Path

import pytest
import typer
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from gateway.cli.config import ledger_engine, ledger_reader, load_or_fail, start_or_fail
from gateway.config.settings import parse


def settings(tmp_path: Path, more: str = ""):
    return parse(f"state_dir: {tmp_path / 'state'}\n{more}", name="x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory: name yours with --config"),
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


def test_a_start_ends_at_an_error_and_only_tells_of_a_warning(tmp_path, capsys):
    path = tmp_path / "the-file.yaml"
    path.write_text("models: {a: {targets: [openai/our-own]}}\nproviders: {openai: {}}\n")
    assert start_or_fail(path).models
    assert "the-file.yaml:1: warning: models.a.targets[0]" in capsys.readouterr().err
    path.write_text("")
    assert load_or_fail(path).models == {}  # a key can be revoked with whatever configuration
    with pytest.raises(typer.Exit) as caught:
        start_or_fail(path)
    assert caught.value.exit_code == 1
    assert "cannot be used: 1 error" in capsys.readouterr().err


def test_a_start_ends_where_a_key_is_not_set(tmp_path, capsys, monkeypatch):
    """Workers ended with it and were started again for ever, and nobody said why."""
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {api_key_env: KEY_OF_THIS_TEST}}\n"
    )
    monkeypatch.delenv("KEY_OF_THIS_TEST", raising=False)
    with pytest.raises(typer.Exit) as caught:
        start_or_fail(path)
    assert caught.value.exit_code == 1
    said = "providers.openai.api_key_env: `KEY_OF_THIS_TEST` is not set in the environment"
    assert said in capsys.readouterr().err
    assert load_or_fail(path).models  # commands that ask nobody need no key
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x")
    assert start_or_fail(path).models


def test_a_start_ends_where_the_key_that_pays_for_samples_is_not_set(tmp_path, capsys, monkeypatch):
    """The process that asks would have ended with it, again and again."""
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models:\n"
        "  own: {targets: ['pool:p'], compare_with: [openai/gpt-4o-mini]}\n"
        "  base: {targets: ['pool:q'], compare_with: [openai/gpt-4o-mini]}\n"
        "pools:\n"
        "  p:\n"
        "    engine: {endpoints: ['http://127.0.0.1:1/v1']}\n"
        "    gpu: {type: CPU}\n"
        "    sampling: {teams: [a], model: own, baseline: base, key_env: KEY_OF_THIS_TEST}\n"
        "  q: {engine: {endpoints: ['http://127.0.0.1:2/v1']}, gpu: {type: CPU}}\n"
    )
    monkeypatch.delenv("KEY_OF_THIS_TEST", raising=False)
    with pytest.raises(typer.Exit):
        start_or_fail(path)
    said = "pools.p.sampling.key_env: `KEY_OF_THIS_TEST` is not set in the environment"
    assert said in capsys.readouterr().err
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x")
    assert start_or_fail(path).models


@pytest.mark.parametrize(
    ("section", "value", "words"),
    [
        (
            "opentelemetry: {endpoint: 'http://c:1', headers_env: KEY_OF_THIS_TEST}",
            "",
            "is not set",
        ),
        (
            "opentelemetry: {endpoint: 'http://c:1', headers_env: KEY_OF_THIS_TEST}",
            "x",
            "must hold",
        ),
        ("alerts: {webhook_env: KEY_OF_THIS_TEST}", "chat.example", "must hold one address"),
        ("alerts: {webhook_env: KEY_OF_THIS_TEST}", "", "is not set"),
        ("ledger: {url_env: KEY_OF_THIS_TEST}", "\n", "is not set"),
        ("dashboard: {enabled: true, reader_url_env: KEY_OF_THIS_TEST}", "", "is not set"),
    ],
)
def test_a_start_ends_where_a_process_would_end_again_and_again(
    tmp_path, capsys, monkeypatch, section, value, words
):
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {simulated: true, start: true}}\n" + section + "\n"
    )
    monkeypatch.setenv("KEY_OF_THIS_TEST", value)
    with pytest.raises(typer.Exit):
        start_or_fail(path)
    said = capsys.readouterr().err
    assert f"_env: `KEY_OF_THIS_TEST` {words}" in said
    assert value in ("", "x", "\n") or value not in said


def test_a_start_ends_where_the_secret_of_kept_answers_is_quickly_guessed(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {simulated: true, start: true}}\n"
        "server: {idempotency: {replay: {enabled: true, key_env: KEY_OF_THIS_TEST}}}\n"
    )
    for secret, said in [("", "is not set"), ("x" * 31, "must hold at least 32 characters")]:
        monkeypatch.setenv("KEY_OF_THIS_TEST", secret)
        with pytest.raises(typer.Exit):
            start_or_fail(path)
        words = f"server.idempotency.replay.key_env: `KEY_OF_THIS_TEST` {said}"
        assert words in capsys.readouterr().err
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x" * 32)
    assert start_or_fail(path).models
    path.write_text(path.read_text().replace("enabled: true", "enabled: false"))
    monkeypatch.delenv("KEY_OF_THIS_TEST")
    assert start_or_fail(path).models


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
