from types import SimpleNamespace

import pytest

from gateway.fleet.kv_transfers import TransferTimes
from gateway.fleet.role_candidates import PartnerViews, with_roles
from router.bid_price import BidPrice
from router.prompts import PromptPrefix
from router.request_kinds import RequestKind
from router.types import Candidate, EngineState, StepModel, TargetHealth

STEP = StepModel(4.79e-3, 28e-6, 46.8e-9, 27.8e-6, 13.8e-3)


def state(health=TargetHealth.HEALTHY) -> EngineState:
    return EngineState(health, STEP, 0, 0, 0.0, 0.0, 1000, 0.0, 0.0, 16, 8, 512)


def views(states, marks=(), hits=0) -> PartnerViews:
    seen = [SimpleNamespace(snapshot=lambda _now, known=known: known) for known in states]
    prefixes = SimpleNamespace(look_up=lambda row, _request: (hits, hits if row == 0 else 0))
    request = SimpleNamespace(beginning=PromptPrefix(marks=marks) if marks else PromptPrefix())
    return PartnerViews(seen.__getitem__, prefixes, request, 1.0)


def target(role, row, partners=(), **more):
    values = {"bid_price_pusd_per_s": 0, "transfers": None, "answers_too": False, **more}
    return SimpleNamespace(name=f"pool:a/{row}", role=role, row=row, partners=partners, **values)


def own(row) -> Candidate:
    chat = frozenset({RequestKind.CHAT})
    return Candidate(f"pool:a/{row}", "a", frozenset(), chat, 100, True, 0, 1, engine=state())


def known(health=TargetHealth.HEALTHY, bid=0.0):
    return state(health), 100, BidPrice(bid, 0.0, 1.0)


def test_one_that_answers_has_those_that_read() -> None:
    times = TransferTimes(0.02, 1e-5)
    readers = (target("prefill", 0, transfers=times),
               target("prefill", 1, transfers=times, bid_price_pusd_per_s=7))  # fmt: skip
    seen = views([known(bid=3.0), known(TargetHealth.DOWN, bid=3.0)], marks=(1, 2), hits=40)
    made = with_roles(own(2), target("decode", 2, readers), seen)
    assert (made.is_apart, made.is_spare) == (True, False)
    first, second = made.prefillers
    assert (first.name, first.bid_price_pusd_per_s, first.setup_s) == ("pool:a/0", 3.0, 0.02)
    assert (first.engine.prefix_hit_tokens, second.engine.prefix_hit_tokens) == (40, 0)
    assert (second.bid_price_pusd_per_s, second.engine.health) == (7, TargetHealth.DOWN)


@pytest.mark.parametrize(
    ("healths", "spare"),
    [
        ((TargetHealth.HEALTHY,), True),
        ((TargetHealth.DOWN, TargetHealth.HEALTHY), True),
        ((TargetHealth.DOWN, TargetHealth.UNKNOWN), False),
    ],
)
def test_one_that_reads_is_spared_while_another_can_answer(healths, spare) -> None:
    partners = tuple(target("decode", row) for row in range(len(healths)))
    made = with_roles(own(9), target("prefill", 9, partners), views([known(h) for h in healths]))
    assert (made.is_apart, made.is_spare, made.prefillers) == (True, spare, ())


def test_one_that_reads_and_answers_too_is_not_spared() -> None:
    partners = (target("decode", 0),)
    made = with_roles(own(9), target("prefill", 9, partners, answers_too=True), views([known()]))
    assert (made.is_apart, made.is_spare) == (True, False)


def test_a_whole_replica_beside_them_is_compared_by_its_way() -> None:
    made = with_roles(own(0), target("whole", 0), views([]))
    assert (made.is_apart, made.is_spare, made.prefillers) == (True, False, ())
