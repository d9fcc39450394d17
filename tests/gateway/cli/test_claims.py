"""The command that anyone can run: no ledger, no configuration, figures from the product."""

import json

from typer.testing import CliRunner

from gateway.cli.app import app


def test_every_claim_is_recomputed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["claims", "--json"])
    assert answer.exit_code == 0
    told = {entry["id"]: entry for entry in json.loads(answer.stdout)}
    assert len(told) == 47
    assert told["even-2xH100-gpt-4"]["recomputed"] == ["352800000"]
    assert all(line["agrees"] for line in told.values())
    assert list(tmp_path.iterdir()) == []


def test_only_those_that_do_not_follow() -> None:
    answer = CliRunner().invoke(app, ["claims", "--wrong"])
    assert "2x H100 against GPT-4, break-even" in answer.stdout
    assert "2x A100, a month of 720 hours" not in answer.stdout
