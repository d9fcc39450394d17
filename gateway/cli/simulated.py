"""A what-if that a gateway elsewhere plays: asked for, waited for, with its bar."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from gateway.admin import whatifs as verbs
from gateway.cli.desk import Desk, looking
from gateway.cli.output import bars, fail
from gateway.supposed import REQUESTS_MOST

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that are the same here and elsewhere."""

    ledger: str | None
    model: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    times: float = 1.0
    most: int | None = None
    seed: int = 1


def elsewhere(sets: Sequence[tuple[str, str]], wanted: Wanted, config: Path) -> dict[str, Any]:
    """The document. `sets`: one or two, by name and text."""
    assert wanted.ledger is not None, "only its ledger has a gateway elsewhere"
    (name, text), *rest = sets
    asked = verbs.Supposing(
        policies=text, name=name, ledger=wanted.ledger, model=list(wanted.model),
        engine=list(wanted.engine), times=wanted.times, most=wanted.most or REQUESTS_MOST,
        seed=wanted.seed,
    )  # fmt: skip
    if rest:
        asked.against_name, asked.against = rest[0]
    with looking(config) as desk, bars() as bar:
        job = desk.do(verbs.policies_simulate, asked)["job"]
        return _waited(desk, job, bar)


def _waited(desk: Desk, job: str, bar: Progress) -> dict[str, Any]:
    task = bar.add_task("starts", total=None)
    while True:
        found = desk.do(verbs.policies_simulated, verbs.Job(job))
        now = found["progress"]
        bar.update(task, description=now["doing"], completed=now["done"], total=now["of"] or None)
        if found["state"] == "done":
            result: dict[str, Any] = found["result"]
            return result
        if found["state"] == "failed":
            fail(str(found["fault"]))
        time.sleep(LOOK_S)
