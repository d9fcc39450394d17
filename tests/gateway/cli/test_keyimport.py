"""`breakeven keys import` tells first, writes when told to, and the same again changes nothing."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine
from ledger.orm.tables import KeyRow

TABLES = Path(__file__).parents[1] / "control" / "litellm" / "tables.sql"


@pytest.fixture
def source(postgres_url):
    engine = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://", 1))
    digest = sha256(b"sk-a").hexdigest()
    with engine.begin() as connection:
        for statement in TABLES.read_text().split(";\n"):
            if statement.strip():
                connection.execute(text(statement))
        connection.exec_driver_sql(
            'INSERT INTO "LiteLLM_VerificationToken" (token, key_alias, max_budget, '
            f"budget_duration) VALUES ('{digest}', 'web', 5, '30d')"
        )
    yield engine, postgres_url
    engine.dispose()


def test_it_tells_first_and_then_writes_once(source, tmp_path) -> None:
    engine, url = source
    config, out = tmp_path / "breakeven.yaml", tmp_path / "budgets.yaml"
    config.write_text(f"state_dir: {tmp_path}\n")
    runner = CliRunner()
    words = ["keys", "import", "--from-litellm-database", url, "--config", str(config), "--json"]

    def run(*more: str, code: int = 0) -> dict:
        done = runner.invoke(app, [*words, *more])
        assert done.exit_code == code, done.output
        return json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.output}

    told = run()
    assert (told["applied"], told["keys"], told["budgets"]) == (False, 1, 1)
    ledger = make_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger.connect() as connection:
        assert connection.execute(KeyRow.__table__.select()).all() == []
    assert "--out FILE" in run("--apply", code=1)["said"]
    applied = run("--apply", "--out", str(out))
    assert (applied["keys_made"], applied["keys_known"]) == (1, 0)
    (budget,) = yaml.safe_load(out.read_text())["budgets"]
    assert (budget["usd"], budget["period"]) == ("5", "month")
    out.unlink()
    assert run("--apply", "--out", str(out))["keys_known"] == 1
    with engine.begin() as connection:
        connection.execute(text('UPDATE "LiteLLM_VerificationToken" SET budget_duration = NULL'))
    lost = run("--apply", code=1)
    assert lost["notes"][0]["lost"] == "budgets"
    assert run("--apply", "--accept", "budgets")["applied"]
    ledger.dispose()
