"""`breakeven engine`: GPUs with dated prices, plans with their arithmetic, installation."""

import json

import pytest
from rich.progress import Progress

from backends.engine.catalog import GPUS
from gateway.cli.progress_bars import progress


def test_the_list_names_every_gpu_with_dated_prices(engine):
    answer = engine("list")
    assert answer.exit_code == 0
    for gpu in GPUS:
        assert gpu.name in answer.stdout
    rows = json.loads(engine("list", "--json").stdout)
    assert [row["name"] for row in rows] == [gpu.name for gpu in GPUS]
    assert all(row["price"]["seen"] for row in rows if row["price"])


@pytest.mark.usefixtures("no_index")
def test_an_engine_that_cannot_be_had_is_said_with_the_way_to_it(tmp_path, engine, monkeypatch):
    monkeypatch.setattr("backends.engine.torchwheel.fetch", lambda *_: None)
    answer = engine("install", "--directory", tmp_path / "engine")
    assert answer.exit_code == 0
    assert "no torch==" in answer.stdout
    assert "Add it later with: breakeven engine install --find-links" in answer.stdout
    assert not (tmp_path / "engine").exists()


@pytest.mark.usefixtures("no_index")
def test_an_installation_that_breaks_has_status_1(tmp_path, engine):
    (tmp_path / "file").write_text("in the way")
    answer = engine("install", "--directory", tmp_path / "file" / "engine", "--json")
    assert answer.exit_code == 1
    assert answer.stdout == ""


def test_progress_is_quiet_where_a_program_reads():
    assert isinstance(progress(), Progress)
    assert progress(quiet=True).disable
