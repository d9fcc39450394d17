"""Ten kills of random processes under load in every run; the scenes' judgement; their controls.

The scenes at their full size, and every control, are `make chaos`.
"""

import os
import subprocess
import sys

import account
import chaos
import justice
import pytest
import scene_flush
import scene_kills
import scene_restart
import stage
from account import INPUT, OUTPUT, Books
from crowd import CallerRecord
from scene import Given, SceneFigures
from stage import MissingPart

KILLS = 10
NAME = "r1"


def row(**changes):
    found = {
        "attempt_id": f"{NAME}.1", "request_id": NAME, "opened_us": 10, "settled_us": 20,
        "status": "finished", "flag": None, "basis": "reported", "input_tokens": 7,
        "cached_tokens": 0, "output_tokens": 3, "bound_pusd": 10**7,
        "cost_pusd": 7 * INPUT + 3 * OUTPUT,
    }  # fmt: skip
    return {**found, **changes}


def entry(**changes):
    found = {
        "request_id": f"{NAME}.1", "status": "finished", "prompt_tokens": 7, "cached_tokens": 0,
        "completion_tokens": 3,
    }  # fmt: skip
    return {**found, **changes}


def books(**changes):
    cost = row()["cost_pusd"]
    hold = {"attempt_id": f"{NAME}.1", "budget_id": "b", "window": 0, "amount_pusd": 10**7,
            "state": "posted", "actual_pusd": cost}  # fmt: skip
    found = {
        "attempts": [row()], "posted": {f"{NAME}.1": [cost]}, "holds": [hold],
        "windows": {("b", 0): cost}, "limits": {"b": 10**8}, "refusals": [], "aside": [],
        "findings": [],
    }  # fmt: skip
    return Books(**{**found, **changes})


SAID = CallerRecord("t", 1.0, 2.0, NAME, 200, finished=True, prompt_tokens=7, completion_tokens=3)


def judged(known, said=(SAID,), entries=None):
    found = SceneFigures()
    account.join(list(said), [entry()] if entries is None else entries, known, found)
    return found.red


def test_journals_that_agree_are_not_red():
    assert judged(books()) == []


@pytest.mark.parametrize(
    ("known", "entries", "red"),
    [
        (books(attempts=[]), None, "lost 1"),
        (books(attempts=[row(output_tokens=2)]), None, "lost 1"),
        (books(attempts=[row(status="lost")]), None, "lost 1"),
        (books(attempts=[row(), row()]), None, "duplicated 2"),
        (books(), [entry(), entry()], "duplicated 1"),
        (books(attempts=[row(cost_pusd=row()["cost_pusd"] + 1)]), None, "difference_pusd 2"),
        (books(posted={}), None, f"difference_pusd {row()['cost_pusd']}"),
        (books(windows={("b", 0): 1}), None, f"difference_pusd {row()['cost_pusd'] - 1}"),
        (books(limits={"b": 10**7 - 1}), None, "overspent_pusd 1"),
        (books(), [entry(), entry(request_id="r2.1")], "tries without a row 1"),
        (books(attempts=[row(settled_us=None)]), None, "left open 1"),
        (books(aside=[b"x"]), None, "quarantined 1"),
        (books(findings=["x"]), None, "verify findings 1"),
    ],
)
def test_what_disagrees_is_red(known, entries, red):
    assert red in judged(known, entries=entries)


def refusal(begun_s, ended_s):
    return CallerRecord("t", begun_s, ended_s, "r9", 429, code="budget_exceeded")


@pytest.mark.parametrize(
    ("begun_s", "limit", "wrong"),
    [
        (1.5, 2 * 10**7 - 1, 0),  # beside one that is held
        (1.5, 2 * 10**7, 1),
        (9.0, 2 * 10**7 - 1, 1),  # long after it was settled for less
        (9.0, 10**7 + row()["cost_pusd"] - 1, 0),
    ],
)
def test_a_refusal_is_justified_by_what_may_have_been_held(begun_s, limit, wrong):
    said = [SAID, refusal(begun_s, begun_s + 0.1)]
    assert justice.unjustified(said, books(), limit, 10**7) == wrong


def test_ten_kills_lose_nothing(monkeypatch):
    """`make chaos` has three hundred; what happens without the flush is `--broken` there."""
    monkeypatch.setattr(scene_kills, "CYCLES", KILLS)
    monkeypatch.setattr(scene_kills, "FINISHED", 1)
    monkeypatch.setattr(scene_kills, "PAUSE_S", (0.05, 0.3))
    found = scene_kills.play(Given(say=print, seed=12))
    print(found.size, found.figures)
    assert found.red == []
    assert found.figures["finished"] > KILLS
    assert all(name in found.size for name in ("parent", "telemetry", "worker", "writer"))


@pytest.mark.part("strace")
@pytest.mark.parametrize("broken", [False, True])
def test_every_commit_group_is_flushed(broken):
    """By the kernel's own count; `broken` asks nobody for it, and is red."""
    try:
        found = scene_flush.play(Given(scale=0.02, broken=broken))
    except MissingPart as missing:
        pytest.skip(str(missing))  # a container may not let anybody be traced
    assert bool(found.red) is broken, found


@pytest.mark.long  # compiles the whole product once more
def test_the_code_of_before_the_newest_migration_can_be_started(tmp_path):
    if not scene_restart.before_the_newest_migration(tmp_path):
        pytest.skip("no history of the product here: an archive, or a shallow clone")
    command = [sys.executable, "-c", scene_restart.command_of(tmp_path), "--help"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (told.returncode, "serve" in told.stdout) == (0, True), told.stderr


def test_this_codes_command_is_the_one_that_hosts_are_started_with():
    assert scene_restart.command_of(stage.ROOT) == stage.SERVE


def test_every_scene_has_a_control_and_a_name_of_its_own(capsys):
    names = [scene.name for scene in chaos.SCENES]
    assert len(set(names)) == len(names)
    assert all(scene.control for scene in chaos.SCENES)
    assert chaos.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(names)
    assert chaos.main(["--only", "nothing"]) == 2


def test_a_red_row_fails_the_run_and_a_control_that_is_not_red_does_too(monkeypatch, tmp_path):
    """The exit status is the table's."""
    red = [False]

    def play(_given):
        return SceneFigures(lost=int(red[0]))

    scene = chaos.Scene("X", "x", "about", play, "control", databases=("sqlite",))
    monkeypatch.setattr(chaos, "SCENES", (scene,))
    monkeypatch.setattr(chaos, "OUT", tmp_path / "chaos.json")
    monkeypatch.setattr(chaos, "ROOT", tmp_path)
    assert (chaos.main([]), chaos.main(["--broken"])) == (0, 1)
    red[0] = True
    assert (chaos.main([]), chaos.main(["--broken"])) == (1, 0)
    assert '"lost 1"' in (tmp_path / "chaos.json").read_text()
