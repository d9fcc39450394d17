"""`breakeven metrics`: a file is kept under a name, listed, refused by line, withdrawn."""

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{simulated: true}}}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})


def test_a_metric(run, tmp_path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("day,value,team,tag\n2026-11-02,120,,\n2026-11-03,9,,product=support\n")
    answer = run("metrics", "import", "tickets", str(file))
    assert (answer.exit_code, answer.stdout) == (0, "The metric tickets has 2 values of t.csv.\n")
    shown = run("metrics", "list").stdout
    assert "tickets" in shown
    assert "2026-11-03" in shown
    assert run("metrics", "withdraw", "tickets").exit_code == 0
    assert run("metrics", "withdraw", "tickets").exit_code == 1
    file.write_text("day,value\nx,1\n")
    assert "`x` is not a day" in run("metrics", "import", "tickets", str(file)).stderr
    assert "No such file" in run("metrics", "import", "tickets", "none.csv").stderr
