"""Everybody's clients, unchanged, in a loop with a tool: what they saw and what was booked.

Frameworks of Python and Node, and coding agents as they are started by hand, each in front of a
gateway whose upstream makes them run a tool (`loop_upstream.py`). Every check has a key of its own:
the rows of its team are what its upstream answered, and what the client says was used.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_agents import AGENTS, Place, run_agent, tokens_told
from loop_config import KEY_VARIABLE, config_of
from loop_programs import PROGRAMS, command_of, packages_of, said_by
from loop_terminals import TERMINALS, run_terminal
from loop_upstream import MARK, PLAIN, SAID, LoopUpstream

APPLIED_LIMIT_S = 60
RAIN = f"{SAID}rain in Ghent"
ROWS = (
    "SELECT status, input_tokens, cached_tokens, output_tokens, cost_pusd FROM attempts"
    " WHERE team_id = :team AND settled_us IS NOT NULL ORDER BY opened_us"
)
WAITING = "SELECT count(*) AS n FROM attempts WHERE team_id = :team AND settled_us IS NULL"


def least_rows(seen: dict[str, Any]) -> int:
    """Return how many rows a check has at least: a tool that ran took two requests."""
    return 2 if "towns" in seen else 1


def judge_rows(seen: dict[str, Any], rows: list[dict]) -> list[str]:
    """What is wrong with the rows of a check; nothing where all is well."""
    wrong = [f"a row is {row['status']}" for row in rows if row["status"] != "finished"]
    wrong += ["a row has no cost" for row in rows if not row["cost_pusd"]]
    if len(rows) < least_rows(seen):
        wrong.append(f"{len(rows)} rows")
    if (told := seen.get("usage")) is not None:
        booked = [
            sum(row["input_tokens"] + row["cached_tokens"] for row in rows),
            sum(row["output_tokens"] for row in rows),
        ]
        # Some count what was read from the cache apart from the rest.
        uncached = booked[0] - sum(row["cached_tokens"] for row in rows)
        if told not in (booked, [uncached, booked[1]]):
            wrong.append(f"{told} told, {booked} booked")
    return wrong


def judge_answer(seen: dict[str, Any]) -> list[str]:
    """What is wrong with what the client saw."""
    if "failed" in seen:
        return [seen["failed"]]
    if "text" in seen:
        right = seen["text"].strip() == RAIN and seen["towns"] == ["Ghent"]
    elif "document" in seen:
        right = seen["document"].keys() == {"name", "count"}
    elif "vector" in seen:
        right = seen["vector"] == [0.5, 0.25, -0.125, 1.0]
    else:
        right = seen["plain"] == PLAIN
    return [] if right else [f"saw {seen}"]


ROW = {
    "status": "finished",
    "input_tokens": 5,
    "cached_tokens": 16,
    "output_tokens": 3,
    "cost_pusd": 1,
}


@pytest.mark.parametrize(
    ("seen", "rows"),
    [
        ({"towns": []}, [ROW]),
        ({}, [{**ROW, "status": "client_gone"}]),
        ({}, [{**ROW, "cost_pusd": None}]),
        ({"usage": [21, 4]}, [ROW]),
        ({"usage": [5, 2]}, [ROW]),
        ({}, []),
    ],
)
def test_a_wrong_row_is_found(seen: dict, rows: list[dict]) -> None:
    assert judge_rows(seen, rows)
    assert judge_rows({"usage": [21, 3]}, [ROW]) == judge_rows({"usage": [5, 3]}, [ROW]) == []


@pytest.mark.parametrize(
    "seen",
    [
        {"failed": "why"}, {"text": RAIN, "towns": []}, {"text": "no", "towns": ["Ghent"]},
        {"document": {"name": "a"}}, {"vector": [0.0, 0.25, -0.125, 1.0]}, {"plain": ""},
    ],
)  # fmt: skip
def test_a_wrong_answer_is_found(seen: dict) -> None:
    assert judge_answer(seen)


# ---------------------------------------------------------------- the clients themselves


@pytest.fixture(scope="module")
def upstream() -> Iterator[LoopUpstream]:
    with LoopUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(serve: Callable, upstream: LoopUpstream):
    return serve(config_of(upstream.port), {KEY_VARIABLE: "any"})


def settled(gateway, team: str, count: int) -> list[dict]:
    """The rows of a team, once all that were opened are settled."""

    def found() -> list[dict] | None:
        rows = gateway.rows(ROWS, team=team)
        return rows if len(rows) >= count and not gateway.rows(WAITING, team=team)[0]["n"] else None

    return gateway.until(found, APPLIED_LIMIT_S)


def told_by(program: str, gateway, folder: Path) -> dict[str, dict]:
    """What a program's checks saw; it sees nothing of this process's environment."""
    command = command_of(program, folder)
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": "unused", "ANTHROPIC_BASE_URL": gateway.root,
        "ANTHROPIC_API_KEY": "unused",
    }  # fmt: skip
    names = json.loads(said_by([*command, "--names"], folder, environ))
    keys = {name: gateway.key(team=name) for name in names}
    return json.loads(said_by(command, folder, {**environ, "LOOP_KEYS": json.dumps(keys)}))


@pytest.mark.long
@pytest.mark.parametrize(
    "program",
    [pytest.param(name, marks=pytest.mark.part(part)) for name, (part, _) in PROGRAMS.items()],
)
def test_frameworks(gateway, upstream: LoopUpstream, program: str, tmp_path: Path) -> None:
    before = len(upstream.billed)
    told = told_by(program, gateway, tmp_path)
    wrong = {name: found for name, seen in told.items() if (found := judge_answer(seen))}
    assert wrong == {}
    assert len(told) == PROGRAMS[program][1]
    rows = {name: settled(gateway, name, least_rows(seen)) for name, seen in told.items()}
    wrong = {name: found for name in told if (found := judge_rows(told[name], rows[name]))}
    assert wrong == {}
    assert_billed(
        [row for each_rows in rows.values() for row in each_rows], upstream.billed[before:]
    )


def assert_billed(rows: list[dict], billed: list[tuple[int, int]]) -> None:
    """The ledger has what the upstream answered, call by call."""
    booked = [(row["input_tokens"] + row["cached_tokens"], row["output_tokens"]) for row in rows]
    assert sorted(booked) == sorted(billed)


@pytest.mark.long
@pytest.mark.part("agents")
@pytest.mark.parametrize("name", AGENTS)
def test_coding_agents(gateway, upstream: LoopUpstream, name: str, tmp_path: Path) -> None:
    before = len(upstream.billed)
    packages = packages_of("agents")
    said = run_agent(name, Place(tmp_path, gateway.base_url, gateway.key(team=name), packages))
    assert re.search(rf"{SAID}.*{MARK}", said), said[-3000:]
    billed = upstream.billed[before:]
    rows = settled(gateway, name, len(billed))
    seen = {"towns": [], "usage": tokens_told(name, said)}
    assert judge_rows(seen, rows) == []
    assert_billed(rows, billed)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.part(part)) for name, (part, *_) in TERMINALS.items()],
)
def test_terminals(gateway, upstream: LoopUpstream, name: str, tmp_path: Path) -> None:
    """aider edits by texts and has no tool; the others run one."""
    before = len(upstream.billed)
    said = run_terminal(name, tmp_path, gateway.base_url, gateway.key(team=name))
    told = PLAIN if name == "aider" else f"{SAID}.*{MARK}"
    assert re.search(told, said, re.DOTALL), said[-3000:]
    billed = upstream.billed[before:]
    rows = settled(gateway, name, len(billed))
    assert judge_rows({} if name == "aider" else {"towns": []}, rows) == []
    assert_billed(rows, billed)
