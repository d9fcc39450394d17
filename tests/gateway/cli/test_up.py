"""What `up` and `demo` show while they work; what they do is tested in `test_start*`."""

import asyncio

import pytest
import typer
from rich.progress import BarColumn, Progress
from typer.testing import CliRunner

from backends.engine import install as installation
from gateway.cli.app import app
from gateway.cli.drawn import PipeSafeConsole
from gateway.cli.up import _Display, _run, up
from gateway.errors import ConfigError
from gateway.host.start import DONE
from ledger.database import DatabaseError


def news(stage: str, message: str, fraction: float | None = None) -> installation.InstallProgress:
    return installation.InstallProgress(stage, message, fraction)


def test_without_a_terminal_each_stage_is_one_line(capsys):
    with _Display() as display:
        display.report(news("torch", "looking"))
        display.report(news("torch", "3 of 180 MiB", 0.02))
        display.report(news("packages", "vLLM and what it needs"))
        display.report(news(DONE, ""))
    assert capsys.readouterr().out.splitlines() == [
        "   engine: torch: looking", "   engine: packages: vLLM and what it needs",
    ]  # fmt: skip


def test_on_a_terminal_a_bar_follows_the_fraction_and_goes_away():
    display = _Display()
    display._console = PipeSafeConsole(force_terminal=True, width=80)
    display._bar = Progress(BarColumn(), console=display._console, transient=True)
    with display:
        display.report(news("torch", "looking"))
        (task,) = display._bar.tasks
        assert task.total is None
        display.report(news("torch", "90 of 180 MiB", 0.5))
        assert (task.total, task.completed) == (1.0, 0.5)
        display.report(news(DONE, ""))
        assert not display._bar.live.is_started


def test_brackets_in_a_line_are_no_markup(capsys):
    _Display().print_line("[red]pool[/red] [1/2]")
    assert capsys.readouterr().out == "[red]pool[/red] [1/2]\n"


class FailingProcess:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def run(self) -> None:
        await asyncio.sleep(0)
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigError(["one fault", "another"]), "breakeven: one fault\nanother\n"),
        (DatabaseError("no such server"), "breakeven: no such server\n"),
        (TimeoutError("no answer"), "breakeven: no answer\n"),
    ],
)
def test_faults_are_lines_and_status_1(capsys, error, said):
    with pytest.raises(typer.Exit) as caught:
        _run(FailingProcess(error))
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err == said


def test_ports_and_a_configuration_exclude_each_other(capsys, tmp_path):
    with pytest.raises(typer.Exit):
        up(tmp_path / "own.yaml", port=1, dashboard_port=2)
    assert "own.yaml's: server.port and dashboard.port" in capsys.readouterr().err


def test_a_configuration_of_ones_own_is_checked_before_anything_starts(capsys, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("models: {a: {targets: [pool:none]}}\nprices: [none.yaml]\n")
    with pytest.raises(typer.Exit):
        up(path)
    error = capsys.readouterr().err
    assert "own.yaml cannot be used: 3 errors" in error
    assert "own.yaml:2: prices[0]: " in error


@pytest.mark.parametrize("command", ["up", "demo"])
@pytest.mark.parametrize("option", ["--port", "--dashboard-port"])
def test_a_port_that_is_none_is_refused_before_anything_is_written(
    command, option, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, [command, option, "99999"])
    assert answer.exit_code == 2
    assert f"Invalid value for '{option}'" in answer.stderr
    assert not list(tmp_path.iterdir())
