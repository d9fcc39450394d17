"""L3, L4: the database stops, is locked, hangs up, and refuses statements or single rows."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from account import join, quiet, read
from crowd import CallerRecord, Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from stage import MODEL, Stage

from ledger.write_lock import acquire_turn, turns_of

STOPS, STOPPED_S = 20, 30.0
RECOVERED_S, TOLD_S, GROWN_MIB = 10.0, 1.0, 32.0
TROUBLES = 40
POISONOUS = 25
TIGHT = {"scope": "team:tight", "usd": 10, "period": "day", "hard": True}
# For each stop one of which a host has borrowed a second or two: what TIGHT lends lasts for hours.
SCARCE_USD = 0.002


def stops(given: Given) -> SceneFigures:
    """The server is stopped at once, as by a power cut, and comes back after a while."""
    found, times = SceneFigures(), given.of(STOPS)
    stopped_s = STOPPED_S if given.scale >= 1 else max(3.0, STOPPED_S * given.scale)
    with Stage(given, "statements dropped") as stage:
        teams = [f"scarce-{number}" for number in range(times)]
        scarce = [{**TIGHT, "scope": f"team:{team}", "usd": SCARCE_USD} for team in teams]
        host = stage.host(budgets=[TIGHT, *scarce])
        host.start()
        tokens = [host.key("tight", team="tight"), host.key("free", team="free")]
        needy = [host.key(team, team=team) for team in teams]
        crowd = Crowd([host], tokens, Manner(leaves=0.03, pause_s=0.01), seed=given.seed)
        crowd.start()
        time.sleep(3.0)
        before, most, recovered = resident(host), 0.0, []
        refused: list[CallerRecord] = []
        for number in range(times):
            needs = Crowd([host], [needy[number]], Manner(pause_s=0.1), callers=2, seed=number + 1)
            needs.start()
            time.sleep(0.5)
            stage.postgres.halt()
            time.sleep(stopped_s)
            most = max(most, resident(host) - before)
            stage.postgres.start()
            recovered.append(until_served(crowd, tokens[0]))
            recovered.append(until_served(needs, needy[number]))
            refused += needs.stop()
            time.sleep(1.0)
            if (number + 1) % 5 == 0:
                given.say(f"{number + 1} of {times} stops, {crowd.finished} answers finished")
        said = crowd.stop() + refused
        _settle(host, said, stage, found)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    _judge_stops(found, said, {tokens[0], *needy}, recovered, most)
    found.size = f"{times} immediate stops of {stopped_s:.0f} s"
    return found


def _judge_stops(
    found: SceneFigures,
    said: list[CallerRecord],
    hard: set[str],
    recovered: list[float],
    most: float,
) -> None:
    mine = [line for line in said if line.token in hard and line.status not in (0, 200)]
    plain = [key for key in mine if (key.status, key.retry_after) != (503, "1")]
    found.expect("hard budgets told otherwise", len(plain), holds=not plain)
    times = sorted(key.ended_s - key.begun_s for key in mine)
    told = times[int(0.99 * len(times))] if times else 0.0
    found.expect("503s on hard budgets", len(mine), holds=bool(mine))  # or nobody was told
    found.expect("told so in s, p99", round(told, 2), holds=told <= 5 * TOLD_S)
    found.expect("served again after s", round(max(recovered), 1),
                 holds=max(recovered) <= RECOVERED_S)  # fmt: skip
    found.expect("grown, MiB", round(most, 1), holds=most <= GROWN_MIB)
    found.figures["answers"] = statuses(said)


def until_served(crowd: Crowd, token: str) -> float:
    """Seconds until a key with a hard budget is served by a request that began after now."""
    began, wall = time.monotonic(), time.time()
    callers = [caller for caller in crowd.callers if caller._token == token]
    while time.monotonic() < began + 60:
        if any(line.finished and line.begun_s > wall
               for caller in callers for line in caller.said[-50:]):  # fmt: skip
            break
        time.sleep(0.05)
    return time.monotonic() - began


def resident(host: Any) -> float:
    """MiB of its workers and its writer."""
    found = 0
    for pid in (*host.pids("gateway.worker"), *host.pids("ledger.writer")):
        with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123  (gone between two looks: raises)
            found += int(file.read().split()[1]) * 4096
    return found / 1024**2


def statements(given: Given) -> SceneFigures:
    """Deadlocks, hang-ups and locks that pass; and rows that the books refuse for good."""
    found, times, rng = SceneFigures(), given.of(TROUBLES), given.rng
    models = {"own": {"targets": [MODEL]}, "poison": {"targets": [MODEL]}}
    with Stage(given, "poison spreads") as stage:
        host = stage.host(models=models)
        host.start()
        plant(host.ledger)
        crowd = Crowd([host], [host.token], Manner(leaves=0.03), seed=given.seed)
        slow = Manner(model="poison", pause_s=0.5 if given.scale >= 0.2 else 0.2)
        poison = Crowd([host], [host.token], slow, callers=1, seed=given.seed + 1)
        crowd.start()
        poison.start()
        troubles: list[Callable[[], None]] = TROUBLE[given.database](stage, host)
        for number in range(times):
            time.sleep(rng.uniform(0.2, 1.0))
            rng.choice(troubles)()
            if (number + 1) % 10 == 0:
                given.say(f"{number + 1} of {times} troubles, {crowd.finished} answers finished")
        while poison.finished < min(POISONOUS, times) and not given.broken:
            time.sleep(0.1)
        bad, said = poison.stop(), crowd.stop()
        _settle(host, said, stage, found, bad)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.size = f"{times} troubles, {len(bad)} poisonous requests"
    found.figures["answers"] = statuses(said)
    return found


def plant(url: str) -> None:
    """Rows of one model break a rule; on PostgreSQL now and then a deadlock is said to be."""
    if url.startswith("sqlite"):
        books = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)
        books.execute(
            "CREATE TRIGGER chaos BEFORE INSERT ON attempts WHEN NEW.model = 'poison' "
            "BEGIN SELECT RAISE(ABORT, 'poisonous'); END"
        )
        books.commit()
        books.close()
        return
    with psycopg.connect(_plain(url), autocommit=True) as books:
        books.execute(
            """CREATE FUNCTION chaos() RETURNS trigger AS $$ BEGIN
            IF NEW.model = 'poison' THEN RAISE EXCEPTION 'poison' USING ERRCODE = '23514'; END IF;
            IF random() < 0.004 THEN RAISE EXCEPTION 'chaos' USING ERRCODE = '40P01'; END IF;
            IF random() < 0.004 THEN RAISE EXCEPTION 'chaos' USING ERRCODE = '40001'; END IF;
            RETURN NEW; END $$ LANGUAGE plpgsql"""
        )
        books.execute(
            "CREATE TRIGGER chaos BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION chaos()"
        )


def _plain(url: str) -> str:
    return url.replace("+psycopg", "")


def _of_postgres(_stage: Stage, host: Any) -> list[Callable[[], None]]:
    def run(query: str) -> None:
        with psycopg.connect(_plain(host.ledger), autocommit=True) as books:
            books.execute(query)

    def hang_up() -> None:
        run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
            " current_database() AND pid <> pg_backend_pid()")  # fmt: skip

    def lock() -> None:
        run("BEGIN; LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(2); COMMIT")

    return [hang_up, hang_up, lock]


def _of_sqlite(_stage: Stage, host: Any) -> list[Callable[[], None]]:
    def lock(seconds: float) -> None:
        path = Path(host.ledger.removeprefix("sqlite:///"))
        books = sqlite3.connect(path, timeout=30, isolation_level=None)
        with acquire_turn(turns_of(path), 30):  # who waits without may not get in beside a backlog
            books.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        books.execute("ROLLBACK")
        books.close()

    longest = iter((12.0,))  # beyond the writer's own patience, once
    return [lambda: lock(1.0), lambda: lock(next(longest, 0.3))]


TROUBLE = {"postgres": _of_postgres, "sqlite": _of_sqlite}


def _settle(
    host: Any,
    said: list[CallerRecord],
    stage: Stage,
    found: SceneFigures,
    bad: list[CallerRecord] | None = None,
) -> None:
    """The join without what is poisonous, which must lie in the quarantine, and nothing else."""
    poison = {item.request_id for item in bad or ()}

    def healthy() -> list[dict[str, Any]]:
        return [entry for entry in stage.upstream.entries()
                if entry["request_id"].partition(".")[0] not in poison]  # fmt: skip

    did = [entry["request_id"] for entry in healthy() if entry["status"] != "refused"]
    found.figures["quiet after s"] = round(quiet(host.ledger, did), 1)
    books = read(host.ledger)
    join(said, healthy(), books, found)
    if bad is None:
        return
    for name in ("quarantined", "verify findings"):
        found.faults = [fault for fault in found.faults if not fault.startswith(name)]
    finished = {item.request_id for item in bad if item.finished}
    alone = {name for name in poison if any(name.encode() in row for row in books.aside)}
    found.expect("poison not set aside", len(finished - alone), holds=finished <= alone)
    others = [row for row in books.aside if not any(name.encode() in row for name in poison)]
    found.expect("set aside with it", len(others), holds=not others)
    wrong = [line for line in books.findings if not line.startswith("nothing_is_quarantined")]
    found.expect("other verify findings", len(wrong), holds=not wrong)


SCENES = (
    Scene(
        "L3", "L3", "PostgreSQL stopped at once and started again under load", stops,
        "a batch that found the database away is dropped", databases=("postgres",),
    ),
    Scene(
        "L4", "L4", "statements fail, connections are cut, some rows are refused", statements,
        "a batch with a refused row is dropped",
    ),
)  # fmt: skip
