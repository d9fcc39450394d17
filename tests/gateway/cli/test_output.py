"""Output for people, for programs, and for mistakes: nothing is lost on a narrow screen."""

import errno
import io
import json
import os
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
import typer

from gateway.cli.output import console, emit, fail, print_line, watching_console


def test_json_is_all_that_a_program_reads(capsys):
    emit({"cost": Decimal("0.1"), "n": 1}, as_json=True, show=lambda out: out.print("a table"))
    assert json.loads(capsys.readouterr().out) == {"cost": "0.1", "n": 1}


def test_a_person_gets_the_table(capsys):
    emit({"n": 1}, as_json=False, show=lambda out: out.print("a table"))
    assert capsys.readouterr().out == "a table\n"


def test_a_mistake_is_one_line_on_stderr_and_status_1(capsys):
    with pytest.raises(typer.Exit) as caught:
        fail("x" * 300)
    assert caught.value.exit_code == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"breakeven: {'x' * 300}\n")


def test_brackets_are_words_not_colours(capsys):
    with pytest.raises(typer.Exit):
        fail("log: [core.py:58] closed [/var/run]")
    assert "[core.py:58] closed [/var/run]" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["breakeven.yaml:100: unknown key", "f.yaml:1234: :smile: [b]"])
def test_a_line_number_between_colons_is_no_picture(line, capsys):
    with pytest.raises(typer.Exit):
        fail(line)
    console(err=True).print(line, markup=False)
    watching_console().print_line(line)
    told = capsys.readouterr()
    assert told.err == f"breakeven: {line}\n{line}\n"
    assert told.out == f"{line}\n"


def test_long_lines_stay_whole_so_that_they_can_be_copied(capsys):
    console().print("y" * 300)
    assert capsys.readouterr().out == "y" * 300 + "\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_an_output_that_cannot_be_written_is_one_line(as_json, monkeypatch, capfd):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(typer.Exit):
            emit({"n": 1}, as_json=as_json, show=lambda out: out.print("a table"))
        monkeypatch.undo()
    assert capfd.readouterr().err == (
        "breakeven: cannot write the output: No space left on device\n"
    )


def test_an_output_that_a_shell_closed_is_no_fault(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    for as_json in (False, True):
        emit({"n": 1}, as_json=as_json, show=lambda out: out.print("a table"))


def test_a_served_host_outlives_who_reads_it(monkeypatch):
    with tempfile.TemporaryFile("w") as real:

        class GoneOutput(io.StringIO):
            fileno = real.fileno

            def write(self, _: str) -> int:
                raise OSError(errno.EPIPE, "nobody reads")

        monkeypatch.setattr("sys.stdout", GoneOutput())
        print_line("one")
        assert os.path.samestat(os.fstat(real.fileno()), Path(os.devnull).stat())
    monkeypatch.setattr("sys.stdout", None)
    print_line("a shell closed it")


@pytest.mark.parametrize("say", [print_line, lambda line: watching_console().print_line(line)])
def test_what_runs_for_long_says_each_line_at_once(capsys, say):
    say("[red]as it is[/red] " + "y" * 300)
    assert capsys.readouterr().out == "[red]as it is[/red] " + "y" * 300 + "\n"
