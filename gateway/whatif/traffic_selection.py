"""Inputs of a what-if: traffic of the ledger, models, engines.

They are shared by the command and the API of a running host. Members of the API have the names of
the command's options, and errors use these names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine

from backends.simulator.profiles import PROFILES
from gateway.config.settings import Settings, resolve_model
from gateway.whatif.ledger_traffic import read_traffic, span_of
from gateway.whatif.replay_fleet import (
    ApiLatencySource,
    EngineModelSource,
    ReplayClock,
    ReplayFleet,
    engine_models,
    pools_of_models,
)
from gateway.whatif.traffic import Arrival
from ledger.fleet.paidrates import read_rates
from ledger.prices.book import PriceBook
from ledger.queries.fleet import capacities
from ledger.queries.traffic import RecordedLength


class WhatIfInputError(Exception):
    """An invalid input; the text says what to use instead."""


@dataclass(frozen=True, slots=True)
class TrafficSelection:
    """Arrivals from `start_us` on; `seen` by API; `about` adds to the document's `traffic`.

    `came_us` is the recorded time of the first arrival, if it differs. `times` is the speed-up of
    the replay.
    """

    arrivals: Sequence[Arrival]
    start_us: int
    seen: Mapping[str, ApiLatencySource]
    about: Mapping[str, Any]
    came_us: int | None = None
    times: float = 1.0
    lengths: Sequence[RecordedLength] = ()  # from answers before them


def read_recorded_traffic(
    books: Engine, span: str, most: int | None, now_us: int
) -> TrafficSelection:
    """Return traffic of the ledger. Raises `WhatIfInputError` or `SpanError`."""
    scope = span_of(span, now_us)
    with books.connect() as connection:
        found = read_traffic(connection, scope, most=most)
    if not found.arrivals:
        raise WhatIfInputError(
            f"--ledger {span}: the ledger has no answered conversation of that time; "
            "name a longer one"
        )
    about = {
        "source": f"ledger, {span}", "form": "ledger", "left_out": found.refused,
        "cut": found.cut, "cache_hits": found.cache_hits,
    }  # fmt: skip
    return TrafficSelection(
        found.arrivals, found.start_us, found.seen, about, lengths=found.lengths
    )


def arrange_traffic(
    settings: Settings, traffic: TrafficSelection, named: Sequence[str], times: float
) -> TrafficSelection:
    """Return traffic with existing models, at the given speed. Raises `WhatIfInputError`."""
    renamed = dict(option.split("=", 1) for option in named if "=" in option)
    plain = [option for option in named if "=" not in option]
    if len(plain) > 1:
        raise WhatIfInputError(f"--model {plain[1]}: one model without FROM= is enough")
    known = [name for name, model in settings.models.items() if model != "passthrough"]
    only = plain[0] if plain else known[0] if len(known) == 1 else None
    found = []
    for arrival in traffic.arrivals:
        name = renamed.get(arrival.model) or (plain[0] if plain else arrival.model or only)
        if name is None:
            words = f"the trace names no model: say --model with one of {', '.join(known)}"
            raise WhatIfInputError(words)
        found.append(arrival._replace(at_s=arrival.at_s / times, model=name))
    for name in sorted({arrival.model for arrival in found}):
        if resolve_model(settings, name) is None:
            raise WhatIfInputError(
                f"there is no model `{name}` in the configuration: use --model {name}=NAME, or"
                f" --model NAME for all, with one of {', '.join(known)}"
            )
    return replace(traffic, arrivals=found, times=times)


def pool_and_model(word: str) -> tuple[str, str]:
    """Parse POOL=WHAT. Raises `WhatIfInputError`."""
    pool, equals, what = word.partition("=")
    if not (equals and pool and what):
        known = ", ".join(sorted(PROFILES))
        raise WhatIfInputError(f"--engine {word}: write POOL=PROFILE with one of {known}")
    return pool, what


def engine_model_source(word: str, what: str) -> EngineModelSource:
    """Return the engine model of a profile name. Raises `WhatIfInputError`."""
    if what not in PROFILES:
        known = ", ".join(sorted(PROFILES))
        raise WhatIfInputError(
            f"--engine {word}: name a profile or a file; the profiles are {known}"
        )
    return EngineModelSource(PROFILES[what].shape, f"profile {what}, as asked for")


def house_of(
    settings: Settings,
    prices: PriceBook,
    traffic: TrafficSelection,
    named: Mapping[str, EngineModelSource],
    books: Engine | None,
) -> ReplayFleet:
    """Return the fleet; engines as `named`, else as measured. Raises `HouseError`."""
    measured = []
    entered: Mapping[str, int | None] = {}
    if books is not None:
        with books.connect() as connection:
            measured = capacities(connection)
        entered = read_rates(books)
    pools = pools_of_models(settings, iter({arrival.model for arrival in traffic.arrivals}))
    models = engine_models(settings, pools, named, measured)
    house = ReplayFleet(settings, prices, models, traffic.seen, traffic.start_us, entered)
    came_us = traffic.start_us if traffic.came_us is None else traffic.came_us
    house.calendar = ReplayClock(came_us, traffic.times)
    house.lengths = traffic.lengths
    return house
