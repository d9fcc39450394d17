"""Process of a what-if: reads inputs from standard input and writes results to files.

It yields to serving processes: lowest priority, and first choice of the kernel's OOM killer. It
ends with the process that started it, because standard input is then closed.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.pricing.configured import price_aliases
from gateway.control.whatif_jobs import (
    IN_FORCE,
    WhatIfJobSpec,
    WhatIfProgress,
    WhatIfResult,
    progress,
    write_result,
)
from gateway.policies.sets import examine_set, rules_of
from gateway.whatif.ledger_traffic import SpanError
from gateway.whatif.replay_fleet import HouseError
from gateway.whatif.traffic_selection import (
    WhatIfInputError,
    arrange_traffic,
    engine_model_source,
    house_of,
    pool_and_model,
    read_recorded_traffic,
)
from gateway.whatif.whatif_run import run_whatif
from ledger.database import URL_VARIABLE, open_readonly
from ledger.policies import policies_in_force
from ledger.prices.stored import load_price_book

NICENESS = 19
STDIN = 0
TOLD_EVERY_S = 0.2


def main(argv: list[str], environ: Mapping[str, str]) -> None:
    place = Path(argv[0])
    _lower_priority()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=WhatIfJobSpec)
    threading.Thread(target=_end_with_starter, daemon=True).start()
    try:
        document = answer(order, environ[URL_VARIABLE], ProgressWriter(place, Clock()))
        write_result(place, WhatIfResult(result=document))
    except (WhatIfInputError, HouseError, SpanError) as error:
        write_result(place, WhatIfResult(fault=str(error)))


def answer(order: WhatIfJobSpec, url: str, report: "ProgressWriter") -> dict[str, Any]:
    """Return the document. Raises `WhatIfInputError`, `HouseError` or `SpanError`."""
    asked = order.question
    settings = Settings.model_validate(order.settings)
    report.write_stage("reads the ledger")
    books = open_readonly(url)
    try:
        in_force = rules_of(settings, policies_in_force(books)).settings
        sets = [(name, _rules(name, text, settings, in_force)) for name, text in asked.sets]
        prices = load_price_book(books, price_aliases(settings))
        traffic = read_recorded_traffic(books, asked.ledger, asked.most, order.now_us)
        traffic = arrange_traffic(settings, traffic, asked.models, asked.times)
        named = {
            pool: engine_model_source(word, what)
            for word in asked.engines
            for pool, what in [pool_and_model(word)]
        }
        house = house_of(settings, prices, traffic, named, books)
    finally:
        books.dispose()
    names = [name for name, _ in sets]
    count = len(traffic.arrivals)
    document = run_whatif(house, sets, traffic.arrivals, asked.seed, report.of(names, count))
    document["traffic"] = {**document["traffic"], **traffic.about, "times": asked.times}
    return document


class ProgressWriter:
    """Writer of the progress file, at most every 0.2 s."""

    def __init__(self, place: Path, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._told_s = -TOLD_EVERY_S

    def write_stage(self, what: str, done: int = 0, of: int = 0) -> None:
        self._told_s = self._clock.now_s()
        progress(self._place, WhatIfProgress(what, done, of))

    def of(self, names: Sequence[str], requests: int) -> Callable[[str, int], None]:
        """Return a callback that reports progress over all policy sets, one after the other."""
        total = requests * len(names)

        def report(name: str, done: int) -> None:
            if done == requests or self._clock.now_s() - self._told_s >= TOLD_EVERY_S:
                self.write_stage(f"plays {name}", names.index(name) * requests + done, total)

        return report


def _rules(name: str, text: str, settings: Settings, in_force: Settings) -> Settings:
    """Return the configuration with a policy set."""
    if text == IN_FORCE:
        return in_force
    examined = examine_set(text, settings, name)
    if examined.settings is None:
        raise WhatIfInputError(
            f"{name} cannot be used: {examined.count}\n" + "\n".join(examined.lines)
        )
    return examined.settings


def _lower_priority() -> None:
    os.nice(NICENESS)
    with suppress(OSError):  # a container may forbid it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _end_with_starter() -> None:
    """Exit when the starter closes its end of the pipe; unbuffered, as a thread holds it."""
    while os.read(STDIN, 4_096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
    os._exit(0)  # at once: the next job may start as soon as the result is written
