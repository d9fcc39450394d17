"""The rival of the cell with prefix caches does what its authors publish."""

from types import SimpleNamespace

from drawn import SHARED_TOKENS
from prefixed import APART, CacheAware, long_arrivals, oracle_hits

from gateway.whatif.traffic import Arrival


def seats(*loads: int):
    return [
        SimpleNamespace(name=f"pool:own/{place}", flights=range(load))
        for place, load in enumerate(loads)
    ]


def asked(*parts: int, tokens: int | None = None) -> Arrival:
    prompt = SHARED_TOKENS * len(parts) if tokens is None else tokens
    return Arrival(0.0, prompt, 10, "long", prefix=parts)


def chosen(rival: CacheAware, arrival: Arrival, *loads: int) -> str:
    seat = rival.choose(arrival, seats(*loads), 0.0, 0).seat
    assert seat is not None
    return seat.name


def test_the_rival_goes_to_the_longest_beginning_until_engines_are_far_apart() -> None:
    rival = CacheAware()
    assert chosen(rival, asked(1, 2, 3), 0, 0) == "pool:own/0"
    assert chosen(rival, asked(7, 8), 5, 0) == "pool:own/1", "it was sent less so far"
    assert chosen(rival, asked(1, 2, 3, 4), 50, 0) == "pool:own/0"
    assert chosen(rival, asked(1, 2, 3, 4), APART + 1, 0) == "pool:own/1"
    assert chosen(rival, asked(7, 9, 10, 11, 12), 0, 0) == "pool:own/0", "a fifth is too little"


def test_drawn_prompts_share_what_their_ids_say() -> None:
    arrivals = long_arrivals(1.0, 0, 600)
    assert all(
        len(arrival.prefix) <= max(1, arrival.prompt_tokens // SHARED_TOKENS)
        for arrival in arrivals
    )
    assert 0.2 < oracle_hits(arrivals) < 0.5
    assert arrivals == long_arrivals(1.0, 0, 600)
