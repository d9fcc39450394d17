"""STORED and BOUNDED: what a caller was told is stored is there, and takes no more room.

In `STORED` workers, the writer and the parent are killed while callers hold conversations; on
SQLite the host's disk is filled to its last byte, too, and on PostgreSQL, which two hosts share,
the server stops. An answer that could not be stored says so (`store: false`) and binds nobody.
In `BOUNDED` many teams store far more than there is room for, and nothing stays for long.
"""

import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

from account import settle
from crowd import statuses
from scene import Given, Scene, SceneFigures
from scene_disk import fill, small_disk
from scene_kills import hit
from sqlalchemy import text
from stage import Stage
from talkers import Talkers, look

from ledger.database import open_readonly

CYCLES, ANSWERS = 100, 10_000
PAUSE_S = (0.3, 1.2)
STRUCK = ("worker",) * 4 + ("writer", "parent") + ("place",) * 2
AWAY_S = 3.0
FOREIGN_EACH = 5  # one answer in so many is looked at as another team, too
TEAMS, TEAM_BYTES, TOTAL_BYTES = 8, 24_000, 96_000
LIVE_S, LOOKS_S = 6.0, 60.0  # an answer is found for so long; every minute a host deletes
BOUNDED_S = 90.0


def play(given: Given) -> SceneFigures:
    rng, found, struck = given.rng, SceneFigures(), Counter[str]()
    with Stage(given, "stored later") as stage, ExitStack() as ended:
        hosts = _hosts(stage, ended)
        for host in hosts:
            host.start()
        stranger = hosts[0].key("stranger", team="stranger")
        talkers = Talkers(hosts, [hosts[0].token], seed=given.seed)
        talkers.start()
        began, cycles = time.monotonic(), given.of(CYCLES)
        time.sleep(1.0)
        for cycle in range(cycles):
            what = "place" if cycle == 0 else rng.choice(STRUCK)
            if what == "place":
                struck[_away(stage, hosts[0])] += 1
            else:
                struck[hit(rng.choice(hosts), what, rng)] += 1
            time.sleep(rng.uniform(*PAUSE_S))
            if (cycle + 1) % 10 == 0:
                given.say(f"{cycle + 1} of {cycles} cycles, {talkers.finished} answers stored")
        enough_s = time.monotonic() + (time.monotonic() - began)  # at most twice as long
        while talkers.finished < given.of(ANSWERS) and time.monotonic() < enough_s:
            time.sleep(0.2)
        said = talkers.stop()
        settle(hosts[0].ledger, said, stage.upstream.entries, found)
        _judge(found, talkers, hosts, stranger)
        codes = [host.terminate() for host in hosts]
        found.expect("exit", max(codes), holds=not any(codes))
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(struck.items()))
    found.size = f"{len(hosts)} hosts, {cycles} troubles ({kinds})"
    found.figures["answers"] = statuses(said)
    return found


def _hosts(stage: Stage, ended: ExitStack) -> list[Any]:
    """Two on PostgreSQL; on SQLite one, whose whole state lies on a small disk."""
    if stage.postgres is not None:
        return [stage.host(), stage.host()]
    disk = ended.enter_context(small_disk(stage.folder))
    books = {"url": f"sqlite:///{disk / 'ledger.db'}"}
    return [stage.host(state=disk / "host", ledger=books)]


def _away(stage: Stage, host: Any) -> str:
    """The place where answers are stored takes none for a while."""
    if stage.postgres is not None:
        stage.postgres.halt()
        time.sleep(AWAY_S)
        stage.postgres.start()
        return "PostgreSQL"
    filler, until_s = host.state.parent / "filler", time.monotonic() + AWAY_S
    while time.monotonic() < until_s:  # what comes free is taken, too
        fill(filler)
        time.sleep(0.1)
    filler.unlink()
    return "full disk"


def _judge(found: SceneFigures, talkers: Talkers, hosts: list[Any], stranger: str) -> None:
    """Every answer that was told to be stored is on every host as it was told."""
    told, seen = talkers.told, talkers.seen
    gone = changed = foreign = 0
    for place, answer in enumerate(told):
        name = str(answer.document["id"])
        for host in hosts:
            status, document = _settled_look(host, answer.token, name)
            gone += status != 200
            changed += status == 200 and document != answer.document
        if place % FOREIGN_EACH == 0:
            foreign += _settled_look(hosts[-1], stranger, name)[0] != 404
    found.lost = (found.lost or 0) + gone
    found.expect("stored", len(told), holds=bool(told))  # or nothing was shown
    found.figures["said store: false"] = seen["not stored"]
    for what in ("gone at once", "another at once", "chain gone"):
        found.expect(what, seen[what], holds=not seen[what])
    found.expect("changed", changed, holds=not changed)
    found.expect("seen by another team", foreign, holds=not foreign)


def _settled_look(host: Any, token: str, name: str) -> tuple[int, dict[str, Any] | None]:
    """A look that is repeated where the answer cannot be reached for a moment."""
    for _ in range(20):
        status, document = look(host, token, name)
        if status != 503:
            break
        time.sleep(0.5)
    return status, document


def bounded(given: Given) -> SceneFigures:
    """Many teams at once, on every host: no team's bytes, nor all, pass their bound."""
    found = SceneFigures()
    with Stage(given, "nothing makes room") as stage:
        store = {"team_bytes": TEAM_BYTES, "total_bytes": TOTAL_BYTES, "days": LIVE_S / 86_400}
        hosts = [stage.host(store=store) for _ in range(1 if stage.postgres is None else 2)]
        for host in hosts:
            host.start()
        tokens = [hosts[0].key(f"t{number}", team=f"t{number}") for number in range(TEAMS)]
        talkers = Talkers(hosts, tokens, callers=2 * TEAMS, seed=given.seed)
        talkers.start()
        place = str(hosts[0].ledger)
        if stage.postgres is None:
            place = f"sqlite:///{hosts[0].state / 'stored.sqlite3'}"
        until_s, most = time.monotonic() + max(BOUNDED_S * given.scale, 20.0), Counter[str]()
        engine = None
        while time.monotonic() < until_s:
            time.sleep(0.02)
            if engine is None:
                if not talkers.finished:  # the first answer makes the file
                    continue
                engine = open_readonly(place)
            for name, value in _sizes(engine).items():
                most[name] = max(most[name], value)
        said = talkers.stop()
        assert engine is not None, "nothing was stored"
        engine.dispose()
        settle(hosts[0].ledger, said, stage.upstream.entries, found)
        codes = [host.terminate() for host in hosts]
        found.expect("exit", max(codes), holds=not any(codes))
    found.size = f"{len(hosts)} hosts, {TEAMS} teams, {talkers.finished} answers"
    found.expect("bytes of a team", most["team"], holds=most["team"] <= TEAM_BYTES)
    found.expect("bytes of all", most["all"], holds=most["all"] <= TOTAL_BYTES)
    late = most["late us"] / 1e6
    found.expect("expired for s", round(late, 1), holds=late <= LOOKS_S + 10)
    gone = talkers.seen["another at once"]
    found.expect("another at once", gone, holds=not gone)
    found.figures["answers"] = statuses(said)
    return found


def _sizes(engine: Any) -> dict[str, int]:
    """Bytes of the largest team and of all, and how long the oldest has been expired."""
    query = "SELECT team_id, sum(size), min(expires_us) FROM stored_objects GROUP BY team_id"
    with engine.connect() as connection:
        rows = connection.execute(text(query)).all()
    sizes = [int(row[1]) for row in rows]
    oldest = min((int(row[2]) for row in rows), default=time.time_ns() // 1000)
    late = time.time_ns() // 1000 - oldest
    return {"team": max(sizes, default=0), "all": sum(sizes), "late us": max(0, late)}


SCENES = (
    Scene(
        "STORED", "design 9", "stored answers through kills, a full disk, a database away", play,
        "an answer is stored half a second after its end",
    ),
    Scene(
        "BOUNDED", "design 9", "far more answers than there is room for", bounded,
        "nothing is deleted for what is new",
    ),
)  # fmt: skip
