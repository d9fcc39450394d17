"""Freezing: dead reckoning plus foreign load, stale state unknown, bounds that bound."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from published_cells import NOW_S, PUBLISHED

from gateway.clock import Clock
from gateway.fleet.attempt_bounds import (
    OUTPUT_BOUND_TOKENS,
    api_bound_pusd,
    expected_tokens,
    own_bound_pusd,
)
from gateway.fleet.candidates import CandidateBuilder, CandidateSnapshot, PromptCaches
from gateway.fleet.comparators import Comparator
from gateway.fleet.fleet import Target
from gateway.fleet.output_cap import LEAST_TOKENS
from gateway.fleet.partly_priced import bar_partly_priced
from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.prompt_bound import likely_prompt_tokens
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import HEARD_LIMIT_S, LiveTargetViews, engine_state
from gateway.kinds import KINDS
from gateway.table_layout import HEALTHS, EngineCell, LoadCell, SequenceCell, TableLayout
from ledger.prices.book import Price, PriceBook, PriceTerms, rates_from
from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import TierRates, dearest_input
from router.decide import decide
from router.prompts import PromptPrefix, RequestUnits
from router.reasons import Reason
from router.request_kinds import DECODED_KINDS, RequestKind
from router.types import (
    Feature,
    OutputMoments,
    Policy,
    RoutingRequest,
    TargetHealth,
)


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=("pool:a/0",), apis=("x/m",))
    )
    board.publish(0, PUBLISHED)
    yield board
    board.close()


def target(*, own: bool, rate: int | None = 3600 * 10**9) -> Target:
    return Target(
        name="pool:a/0" if own else "x/m",
        own=own,
        pool="a" if own else None,
        provider=None if own else "x",
        upstream_model="m",
        simulated=False,
        backend=None,  # type: ignore[arg-type]  # freezing never calls it
        row=0,
        features=frozenset(),
        kinds=frozenset(RequestKind),
        context_tokens=None,
        accepts_salt=True,
        rate_pusd_per_hour=rate,
    )


def request(max_tokens: int | None = 100) -> RoutingRequest:
    return RoutingRequest(
        kind=RequestKind.CHAT,
        model="chat",
        prompt_tokens=200,
        prompt_tokens_bound=300,
        max_tokens=max_tokens,
        output=OutputMoments(count=50, mean=80.0, mean_square=7000.0, p95=150.0),
    )


def state(board: SharedLoadTable, now_s: float = NOW_S):
    return engine_state(board.published(0), board.loads(0), now_s, 10.0, life=board.life(0))


def test_an_engine_that_is_left_alone_counts_as_down(board: SharedLoadTable) -> None:
    asked = []

    def shunned(row: int, loads, now_s: float) -> bool:
        asked.append((row, len(loads), now_s))
        return bool(len(asked) % 2)

    candidates = CandidateBuilder(
        LiveTargetViews(board, 10.0, shunned), PriceBook([]), stale_s=10.0
    )
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)

    def health():
        (own,) = candidates.build(
            [target(own=True)], request(), [], rooms_pusd=[None], ceiling_pusd=None, clock=clock
        )
        return own.candidate.engine.health

    assert [health(), health()] == [TargetHealth.DOWN, TargetHealth.HEALTHY]
    assert asked == [(0, len(LoadCell), NOW_S)] * 2


@pytest.mark.parametrize("is_apart", [True, False])
def test_an_engine_of_a_pool_with_roles_is_a_candidate_of_one(board, is_apart: bool) -> None:
    place = replace(target(own=True), role="decode" if is_apart else "whole", is_apart=is_apart)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    at = {"rooms_pusd": [None], "ceiling_pusd": None, "clock": clock}
    (own,) = CandidateBuilder(board, PriceBook([]), stale_s=9.0).build([place], request(), [], **at)
    assert own.candidate.is_apart is is_apart


def test_residents_are_looked_at_when_it_is_crowded(board: SharedLoadTable) -> None:
    candidates = CandidateBuilder(board, PriceBook([]), stale_s=10.0)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    row, place = board.load_row(0, 0), board.resident_row(0, 0, 0)
    board.cells[place + SequenceCell.HELD_TOKENS] = 200.0
    board.cells[place + SequenceCell.FINAL_TOKENS] = 1400.0
    board.cells[place + SequenceCell.HEARD_S] = NOW_S

    def residents(promised: float):
        board.cells[row + LoadCell.PROMISED_TOKENS] = promised
        (own,) = candidates.build(
            [target(own=True)], request(), [], rooms_pusd=[None], ceiling_pusd=None, clock=clock
        )
        return own.candidate.engine.residents

    assert residents(1472.0) == ()
    assert residents(1480.0) == ((200.0, 1400.0, 0.0),)  # more than half of 2944
    board.cells[place + SequenceCell.HEARD_S] = NOW_S - HEARD_LIMIT_S - 0.01
    assert residents(1480.0) == ()  # not heard of lately: all of its promise counts


def test_the_context_of_an_engine_that_was_never_met_refuses_nothing(
    board: SharedLoadTable,
) -> None:
    """It is down, which passes; that a prompt is too long for it, nobody can tell."""
    candidates = CandidateBuilder(board, PriceBook([]), stale_s=10.0)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    asked = request(max_tokens=100_000)

    def reason(**changes: int) -> Reason:
        place = replace(target(own=True), **changes)
        (own,) = candidates.build(
            [place], asked, [], rooms_pusd=[None], ceiling_pusd=None, clock=clock
        )
        return decide(asked, Policy("p"), [own.candidate]).reason

    assert reason() is Reason.CONTEXT  # 2048 tokens, as it says itself
    own = target(own=True)
    assert candidates.context_of(own, NOW_S) == 2048
    assert candidates.context_of(replace(own, context_tokens=4096), NOW_S) == 4096
    board.publish(0, {EngineCell.HEALTH: float(HEALTHS.index("down"))})
    assert reason() is Reason.CONTEXT  # and as it said
    board.publish(0, {EngineCell.CONTEXT_TOKENS: 0.0})
    assert reason() is Reason.UNHEALTHY
    assert reason(context_tokens=4096) is Reason.CONTEXT  # the configuration knows
    board.publish(0, {EngineCell.HEALTH: float(HEALTHS.index("healthy"))})
    assert reason() is Reason.CONTEXT


def test_what_a_ranking_avoids_is_its_searches(board: SharedLoadTable) -> None:
    """The price that it is compared with lists units, of which quotes know nothing."""
    asked = replace(
        request(0), kind=RequestKind.RERANK, extent=RequestUnits(searches=3, searches_bound=4)
    )
    listed = Price(
        1, "x/m", "test", 0, PriceTerms(rates_from({"input": 0, "output": 0}), search_pusd=7)
    )
    own, _ = CandidateBuilder(board, PriceBook([listed]), stale_s=10.0).build(
        [target(own=True), target(own=False)],
        asked,
        ["x/m"],
        rooms_pusd=[None, None],
        ceiling_pusd=None,
        clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
    )
    assert own.candidate.avoided_pusd == 21


def test_an_engine_is_held_for_nothing_where_its_gpu_does_nothing(board: SharedLoadTable) -> None:
    """Texts become tokens on a processor: a budget that is spent refuses none of it."""
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    candidates = CandidateBuilder(board, PriceBook([]), stale_s=10.0)
    bounds = {}
    for kind in (RequestKind.TOKENIZE, RequestKind.EMBEDDING):
        (own,) = candidates.build(
            [target(own=True)], replace(request(0), kind=kind), [], rooms_pusd=[0],
            ceiling_pusd=None, clock=clock,
        )  # fmt: skip
        bounds[kind] = own.candidate.bound_pusd
    assert bounds[RequestKind.TOKENIZE] == 0 < bounds[RequestKind.EMBEDDING]


def test_an_unpriced_api_stays_unpriced(board: SharedLoadTable) -> None:
    candidates = CandidateBuilder(board, PriceBook([]), stale_s=10.0)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    own, api = candidates.build(
        [target(own=True), target(own=False)],
        request(),
        ["x/m"],
        rooms_pusd=[7, None],
        ceiling_pusd=None,
        clock=clock,
    )
    assert (api.candidate.expected_pusd, api.candidate.bound_pusd) == (None, None)
    assert (own.candidate.expected_pusd, own.candidate.avoided_pusd) == (0, 0)
    assert (own.candidate.budget_room_pusd, api.candidate.budget_room_pusd) == (7, None)
    assert own.candidate.context_tokens == 2048
    assert own.candidate.internal
    assert not api.candidate.internal


def price(output_pusd: int = 600_000, input_pusd: int = 150_000) -> Price:
    rates = rates_from({"input": input_pusd, "output": output_pusd})
    return Price(1, "x/m", "test", 0, PriceTerms(rates))


def frozen_within(
    board: SharedLoadTable,
    room: int | None,
    ceiling: int | None,
    asked: RoutingRequest,
    listed: Price,
) -> tuple[CandidateSnapshot, ...]:
    limits = {"x/m": ModelLimits(16_384, 128_000)}
    return CandidateBuilder(board, PriceBook([listed]), stale_s=10.0, limits=limits).build(
        [target(own=True), target(own=False)], asked, [],
        rooms_pusd=[room, room],
        ceiling_pusd=ceiling,
        clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
    )  # fmt: skip


MONEY = st.none() | st.integers(0, 10**12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the board is only read
@example(room=None, ceiling=31_121_408_000, prompt=513, n=1, rates=(0, 0))  # 2,052 of 2,048 tokens
@example(room=None, ceiling=3_610_624_000, prompt=513, n=1, rates=(0, 0))
@given(
    room=MONEY,
    ceiling=MONEY,
    prompt=st.integers(1, 1500),
    n=st.integers(1, 8),
    rates=st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)),
)
def test_no_open_ended_hold_exceeds_the_room(
    board: SharedLoadTable, room, ceiling, prompt, n, rates
) -> None:
    """What the filters let through is held for no more than is there, and sent with that cap."""
    open_ended = replace(request(None), prompt_tokens=prompt, prompt_tokens_bound=4 * prompt, n=n)
    listed = price(*rates)
    found = frozen_within(board, room, ceiling, open_ended, listed)
    policy = Policy("p", max_cost_pusd=ceiling, kv_headroom_floor=None)
    decision = decide(open_ended, policy, [finding.candidate for finding in found])
    money = min((limit for limit in (room, ceiling) if limit is not None), default=None)
    own, api = found
    # No prompt that is longer than its context is computed.
    fitting = replace(open_ended, prompt_tokens_bound=min(4 * prompt, own.candidate.context_tokens))
    bounds = {
        own: lambda tokens: own_bound_pusd(
            own.target.rate_pusd_per_hour, state(board), fitting, tokens
        ),
        api: lambda tokens: api_bound_pusd(listed, open_ended, tokens),
    }
    for verdict in decision.order:
        finding = own if verdict.candidate.internal else api
        cap, bound = verdict.candidate.output_cap, verdict.candidate.bound_pusd
        if money is None:
            assert cap is None
            continue
        assert bound <= money
        limit = api_limit(open_ended) if finding is api else own.open_end.limit_tokens
        if cap is None:
            assert finding is own, "an API is always told"
            assert bound == bounds[own](own.candidate.context_tokens)
        else:
            assert min(LEAST_TOKENS, limit) <= cap <= limit
            assert bound == bounds[finding](cap)
            assert cap == limit or bounds[finding](cap + 1) > money, "no shorter than it must be"
    for finding in found:
        if finding.candidate.name not in {verdict.candidate.name for verdict in decision.order}:
            assert finding.candidate.bound_pusd > money


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    room=MONEY,
    prompt=st.integers(1, 1500),
    n=st.integers(1, 8),
    max_tokens=st.none() | st.integers(1, 20_000),
    mean=st.floats(0, 30_000),
    rates=st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)),
)
def test_no_more_is_expected_than_may_be_charged(
    board: SharedLoadTable, room, prompt, n, max_tokens, mean, rates
) -> None:
    """Answers are learned from requests of other limits than this one's."""
    learned = OutputMoments(count=50, mean=mean, mean_square=2 * mean**2, p95=2 * mean)
    asked = replace(
        request(max_tokens), prompt_tokens=prompt, prompt_tokens_bound=4 * prompt, n=n,
        output=learned,
    )  # fmt: skip
    listed = price(*rates)
    _, api = frozen_within(board, room, None, asked, listed)
    assert api.candidate.expected_pusd <= api.candidate.bound_pusd
    shorter = api.fit_to_budget(api.candidate.bound_pusd // 2)
    assert shorter is None or shorter.candidate.expected_pusd <= shorter.candidate.bound_pusd


@pytest.mark.parametrize(("max_tokens", "output"), [(None, 240), (100, 240), (80, 240), (30, 90)])
def test_a_request_is_worth_what_its_limit_lets_it_use(
    board: SharedLoadTable, max_tokens: int | None, output: int
) -> None:
    """Its API would charge, and an own engine saves, the shorter of mean and limit, n times."""
    asked = replace(request(max_tokens), n=3)
    own, api = CandidateBuilder(board, PriceBook([price()]), stale_s=10.0).build(
        [target(own=True), target(own=False)],
        asked,
        ["x/m"],
        rooms_pusd=[None, None],
        ceiling_pusd=None,
        clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
    )
    worth = 200 * 150_000 + output * 600_000
    avoided = own.candidate.avoided_pusd, api.candidate.avoided_pusd
    assert (*avoided, api.candidate.expected_pusd) == (worth, 0, worth), "an API avoids nothing"


def test_sound_is_held_for_at_its_own_price(board: SharedLoadTable) -> None:
    listed = price()
    rates = msgspec.structs.replace(listed.terms.rates, audio_output=4_800_000)
    listed = msgspec.structs.replace(
        listed, terms=msgspec.structs.replace(listed.terms, rates=rates)
    )
    _, text = frozen_within(board, None, None, request(50), listed)
    _, sound = frozen_within(board, None, None, replace(request(50), has_sound=True), listed)
    assert sound.candidate.bound_pusd - text.candidate.bound_pusd == 50 * (4_800_000 - 600_000)


def test_a_spoken_answer_does_not_make_a_prompt_of_text_dear(board: SharedLoadTable) -> None:
    listed = price()
    rates = msgspec.structs.replace(
        listed.terms.rates, audio_input=6_000_000, audio_output=4_800_000
    )
    listed = msgspec.structs.replace(
        listed, terms=msgspec.structs.replace(listed.terms, rates=rates)
    )
    asked = replace(request(50), has_sound=True)
    _, heard = frozen_within(board, None, None, asked, listed)
    _, said = frozen_within(board, None, None, replace(asked, text_prompt=True), listed)
    rate = dearest_input(listed.terms.rates, audio=False)
    prompt = asked.prompt_tokens_bound
    assert heard.candidate.bound_pusd - said.candidate.bound_pusd == prompt * (6_000_000 - rate)


def test_the_bound_of_a_long_prompt_does_not_shorten_its_answer(board: SharedLoadTable) -> None:
    asked = replace(request(None), prompt_tokens=35_000, prompt_tokens_bound=140_000)
    _, api = frozen_within(board, 10**15, None, asked, price())
    assert api.candidate.output_cap == 16_384


def api_limit(asked: RoutingRequest) -> int:
    return min(16_384, 128_000 - likely_prompt_tokens(asked))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, 10**10), left=st.integers(0, 10**10))
def test_a_smaller_room_makes_a_shorter_answer(
    board: SharedLoadTable, first: int, left: int
) -> None:
    _, api = frozen_within(board, first, None, request(None), price())
    shorter = api.fit_to_budget(left)
    least = api_bound_pusd(price(), request(None), LEAST_TOKENS)
    assert (shorter is None) == (left < least)
    if shorter is not None:
        assert shorter.candidate.bound_pusd <= left
        assert shorter.candidate.output_cap >= LEAST_TOKENS
        assert shorter.candidate.bound_pusd == api_bound_pusd(
            price(), request(None), shorter.candidate.output_cap
        )


def test_an_answer_without_a_limit_has_the_context_that_its_prompt_leaves(
    board: SharedLoadTable,
) -> None:
    asked = replace(request(None), prompt_tokens=1000, prompt_tokens_bound=2048)
    own, _ = frozen_within(board, None, None, asked, price())
    assert own.open_end.limit_tokens == own.candidate.context_tokens - likely_prompt_tokens(asked)
    full, _ = frozen_within(board, None, None, replace(asked, prompt_tokens=2048), price())
    assert full.open_end.limit_tokens == 1


def test_a_limit_of_the_clients_own_is_never_changed(board: SharedLoadTable) -> None:
    for item in frozen_within(board, 10, 10, request(9000), price()):
        assert item.candidate.output_cap is None
        assert item.fit_to_budget(10**12) is None
    _, api = frozen_within(board, 10, None, request(9000), price())
    assert api.candidate.bound_pusd == api_bound_pusd(price(), request(9000), 9000)


def test_a_model_whose_limit_nobody_stated_gets_a_moderate_one(board: SharedLoadTable) -> None:
    listed = replace_price("x/other")
    _, api = frozen_within(board, 10**12, None, request(None), listed)
    assert api.candidate.bound_pusd is None  # the target's price is another's
    unknown = CandidateBuilder(board, PriceBook([price()]), stale_s=10.0).build(
        [target(own=False)],
        request(None),
        [],
        rooms_pusd=[10**12],
        ceiling_pusd=None,
        clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
    )
    assert unknown[0].candidate.output_cap == OUTPUT_BOUND_TOKENS


def replace_price(name: str) -> Price:
    return msgspec.structs.replace(price(), name=name)


def test_a_price_counts_from_its_first_instant_on_and_backwards(board: SharedLoadTable) -> None:
    """Prices are remembered while none changes."""
    dearer = msgspec.structs.replace(
        price(600_000, 300_000), version=2, effective_from_us=10**15, effective_until_us=10**15 + 5
    )
    candidates = CandidateBuilder(board, PriceBook([price(), dearer]), stale_s=10.0)
    found = []
    for at_us in (10**15 - 1, 10**15, 10**15 + 4, 10**15 + 5, 10**15 - 1):
        (api,) = candidates.build(
            [target(own=False)],
            request(),
            ["x/m", "x/none"],
            rooms_pusd=[None],
            ceiling_pusd=None,
            clock=Clock(now_s=lambda: NOW_S, wall_us=lambda at_us=at_us: at_us),
        )
        clock = Clock(now_s=lambda: NOW_S, wall_us=lambda at_us=at_us: at_us)
        assert candidates.comparators(["x/m", "x/none"], request(), clock) == (
            () if api.price is None else (Comparator(api.price),)
        )
        found.append(api.price and api.price.version)
    assert found == [1, 2, 2, None, 1]


def test_of_a_beginning_that_was_sent_there_as_much_counts_as_is_found(tmp_path, board) -> None:
    prefixes = PrefixIndex(tmp_path / "prefixes", board)
    candidates = CandidateBuilder(board, PriceBook([]), stale_s=10.0, caches=PromptCaches(prefixes))
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    beginning = PromptPrefix(tuple(range(1000, 1004)), ahead=0, whole=2048)  # half of the prompt
    asked = replace(request(), beginning=beginning)

    def hit(trust: float) -> tuple[int, int]:
        board.publish(0, {EngineCell.PREFIX_TRUST: trust})
        (own,) = candidates.build(
            [target(own=True)], asked, [], rooms_pusd=[None], ceiling_pusd=None, clock=clock
        )
        return own.prefix_tokens, own.candidate.engine.prefix_hit_tokens

    assert hit(1.0) == (0, 0)  # nothing was sent
    prefixes.record_sent(0, beginning.marks, 1.0)
    assert [hit(trust) for trust in (1.0, 0.5, 0.0)] == [(100, 100), (100, 50), (100, 0)]
    prefixes.close()


def with_unread(*names: str) -> Price:
    listed = price()
    return msgspec.structs.replace(
        listed, terms=msgspec.structs.replace(listed.terms, unread=names)
    )


@pytest.mark.parametrize(
    ("unread", "features", "room", "ceiling", "barred"),
    [
        ("page_cost", (), 10**12, None, True),
        ("page_cost", (), None, 10**12, True),
        ("page_cost", (), None, None, False),
        ("max_searches", (), 10**12, None, True),
        ("search_context_cost_per_query", (), 10**12, None, False),
        ("search_context_cost_per_query", (Feature.HOSTED_TOOLS,), 10**12, None, True),
        ("input_cost_per_image", (), 10**12, None, False),
        ("input_cost_per_image", (Feature.IMAGES,), 10**12, None, True),
        ("off_peak_pricing", (), 10**12, None, False),
    ],
)
def test_a_limit_on_money_keeps_from_a_price_that_does_not_say_all(
    board: SharedLoadTable, unread, features, room, ceiling, barred
) -> None:
    asked = replace(request(), features=frozenset(features))
    frozen = frozen_within(board, room, ceiling, asked, with_unread(unread))
    own, api = frozen
    assert (own.unread, api.unread) == ((), (unread,))
    judged = bar_partly_priced(asked, frozen, ceiling)
    if not barred:
        assert judged is asked
        return
    reason, detail = judged.barred["x/m"]
    assert reason is Reason.PARTLY_PRICED
    assert detail == f"price of x/m partly known ({unread}): state the fee in a price file"
    decision = decide(replace(judged, features=frozenset()), Policy("p"), [api.candidate])
    assert (decision.order, decision.reason) == ((), Reason.PARTLY_PRICED)


def test_what_a_policy_says_of_a_target_itself_comes_first(board: SharedLoadTable) -> None:
    said = {"x/m": (Reason.CANARY, ""), "x/n": (Reason.CANARY, "")}
    asked = replace(request(), barred=said)
    frozen = frozen_within(board, 10**12, None, asked, with_unread("page_cost"))
    assert bar_partly_priced(asked, frozen, None).barred == said


@pytest.mark.parametrize(
    ("own", "asked", "sent", "rate"),
    [
        ("", "", "", 2),
        ("flex", "", "flex", 1),
        ("flex", "standard", "", 2),  # the client says so
        ("flex", "priority", "priority", 4),
        ("", "flex", "flex", 1),
        ("scale", "", "", 2),  # the price does not list it: at least the standard rates
    ],
)
def test_what_is_expected_is_of_the_tier_that_is_sent(
    board: SharedLoadTable, own, asked, sent, rate
) -> None:
    tiers = [TierRates(name, 0, rates_from({"input": each, "output": each}))
             for name, each in (("flex", 1), ("priority", 4))]  # fmt: skip
    terms = PriceTerms(rates_from({"input": 2, "output": 2}), schedules=tuple(tiers))
    wanted = replace(request(), service_tier=asked)
    (found,) = CandidateBuilder(
        board, PriceBook([Price(1, "x/m", "test", 0, terms)]), stale_s=10.0
    ).build(
        [replace(target(own=False), tier=own)], wanted, [], rooms_pusd=[None], ceiling_pusd=None,
        clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
    )  # fmt: skip
    tokens = expected_tokens(wanted)
    assert found.candidate.expected_pusd == rate * (tokens.input + tokens.output)
    assert found.candidate.bound_pusd == 4 * (wanted.prompt_tokens_bound + 100)
    assert (found.asked_tier, found.unlisted_tier) == (sent, "scale" if own == "scale" else "")


@pytest.mark.parametrize("kind", [*RequestKind])
def test_a_target_asks_for_its_tier_where_text_is_decoded_and_nowhere_else(
    board: SharedLoadTable, kind: RequestKind
) -> None:
    """Red before: sound and pictures are sent no member, and were booked at the tier's rates."""
    flex = TierRates("flex", 0, rates_from({"input": 1, "output": 1}))
    terms = PriceTerms(rates_from({"input": 2, "output": 2}), schedules=(flex,))
    book = PriceBook([Price(1, "x/m", "test", 0, terms)])
    found = [
        CandidateBuilder(board, book, stale_s=10.0).build(
            [replace(target(own=False), tier="flex")],
            replace(request(), kind=kind, service_tier=asked), [], rooms_pusd=[None],
            ceiling_pusd=None, clock=Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15),
        )[0].asked_tier
        for asked in ("", "flex")
    ]  # fmt: skip
    decoded, has_units = kind in DECODED_KINDS, KINDS[kind].units is not None
    assert found == ["flex" if decoded else "", "" if has_units else "flex"]


@pytest.mark.parametrize(
    ("tier", "room", "ceiling", "barred"),
    [
        ("scale", 10**12, None, True),
        ("scale", None, 10**12, True),
        ("scale", None, None, False),
        ("flex", 10**12, None, False),
        ("", 10**12, None, False),
    ],
)
def test_a_limit_on_money_keeps_from_a_tier_that_the_price_does_not_list(
    board: SharedLoadTable, tier, room, ceiling, barred
) -> None:
    dear = TierRates("flex", 0, rates_from({"input": 5_000_000, "output": 90_000_000}))
    terms = msgspec.structs.replace(price().terms, schedules=(dear,))
    listed = msgspec.structs.replace(price(), terms=terms)
    asked = replace(request(), service_tier=tier)
    frozen = frozen_within(board, room, ceiling, asked, listed)
    _, api = frozen
    assert api.unlisted_tier == ("scale" if tier == "scale" else "")
    # Whatever is asked for is held at the dearest that is listed.
    assert api.candidate.bound_pusd == 300 * 5_000_000 + 100 * 90_000_000
    judged = bar_partly_priced(asked, frozen, ceiling)
    if not barred:
        assert judged is asked
        return
    reason, detail = judged.barred["x/m"]
    assert reason is Reason.PARTLY_PRICED
    assert detail == (
        "price of x/m partly known (no price of service tier `scale`): list the tier under "
        "`tiers` in a price file, or leave `service_tier` out"
    )
