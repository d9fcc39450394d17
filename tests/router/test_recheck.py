"""A decision of a moment, once it is known what others did in it."""

from router.decide import decide
from router.reasons import Reason
from router.recheck import PeerLoad, is_still_first
from router.types import Preference

PROMPT = PeerLoad(1.0, 0.0, 9000.0, 9600.0)  # read in a quarter of a second


def test_it_stands_where_others_did_nothing_that_matters(ask, rule, own, api) -> None:
    request, policy, candidates = ask(), rule(), [own(), api()]
    chosen = decide(request, policy, candidates).first_choice
    assert chosen is not None
    assert chosen.candidate.engine is not None
    for missed in (PeerLoad(), PeerLoad(1.0, 0.0, 500.0, 900.0), PeerLoad(-3.0, -9e4, 0.0, -9e4)):
        assert is_still_first(request, policy, candidates, chosen.candidate.name, missed)


def test_it_falls_where_the_promise_could_not_have_been_made(ask, rule, own, api) -> None:
    request, policy, candidates = ask(), rule(), [own(), api()]
    name = candidates[0].name
    assert not is_still_first(
        request, policy, candidates, name, PeerLoad(2.0, 0.0, 18_000.0, 18_400.0)
    )
    assert not is_still_first(
        request, policy, candidates, name, PeerLoad(1.0, 95_000.0, 0.0, 96_000.0)
    )
    alone = candidates[:1]
    assert not is_still_first(request, policy, alone, name, PeerLoad(2.0, 0.0, 18_000.0, 18_400.0))


def test_it_falls_where_the_engines_time_had_its_price_by_then(ask, rule, own, api) -> None:
    request, policy = ask(), rule()
    busy = own({"queued_prefill_tokens": 2000.0}, bid_price_pusd_per_s=1e12)
    candidates = [busy, api()]
    chosen = decide(request, policy, candidates).first_choice
    assert chosen is not None
    assert chosen.candidate is busy
    assert not is_still_first(request, policy, candidates, busy.name, PROMPT)


def test_which_own_engine_is_asked_is_no_reason_to_move(ask, rule, own, api) -> None:
    """The other one is less loaded, and a request that moves waits anew."""
    request, policy = ask(), rule()
    candidates = [own(), own(name="pool:llama/1"), api()]
    missed = PeerLoad(1.0, 0.0, 3000.0, 3200.0)
    assert is_still_first(request, policy, candidates, "pool:llama/0", missed)


def test_a_session_stays_while_its_target_can_keep_the_promise(ask, rule, own, api) -> None:
    sticky = ask(sticky_target="pool:llama/0")
    full = own(bid_price_pusd_per_s=1e12)
    candidates = [full, api()]
    assert is_still_first(sticky, rule(), candidates, full.name, PROMPT)
    split = ask(preferred=Preference(frozenset({full.name}), Reason.WEIGHT))
    assert is_still_first(split, rule(), candidates, full.name, PROMPT)
    assert not is_still_first(ask(), rule(), candidates, full.name, PROMPT)


def test_what_was_not_known_is_the_difference() -> None:
    known, now = PeerLoad(1.0, 10.0, 9.0, 5.0), PeerLoad(3.0, 10.0, 7.0, 20.0)
    assert now.beyond(known) == (2.0, 0.0, -2.0, 15.0)
