"""What candidates are held for beside a limit: overruns, pictures, files, forecasts."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gateway.clock import Clock
from gateway.fleet.candidates import CandidateBuilder, CandidateSnapshot
from gateway.fleet.fleet import Target
from gateway.fleet.output_overruns import TargetOverruns
from gateway.fleet.shared_load import SharedLoadTable
from gateway.kinds.prompt_media import PictureSize, PromptMedia
from gateway.table_layout import TableLayout
from ledger.prices.book import Price, PriceBook, PriceTerms, rates_from
from ledger.prices.modellimits import ModelLimits
from router.request_kinds import RequestKind
from router.target_output import TargetOutput
from router.target_prompts import PromptOverrun, TargetPrompts
from router.types import OutputMoments, RoutingRequest

NOW_S = 50.0
PRICE = Price(1, "x/m", "test", 0, PriceTerms(rates_from({"input": 150_000, "output": 600_000})))
TARGET = Target(
    name="x/m", own=False, pool=None, provider="x", upstream_model="m", simulated=False,
    backend=None,  # type: ignore[arg-type]  # freezing never calls it
    row=0, features=frozenset(), kinds=frozenset(RequestKind), context_tokens=None,
    accepts_salt=True,
)  # fmt: skip


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(tmp_path / "board", TableLayout(workers=1, engines=(), apis=("x/m",)))
    yield board
    board.close()


def request(max_tokens: int | None) -> RoutingRequest:
    moments = OutputMoments(count=50, mean=80.0, mean_square=7000.0, p95=150.0)
    return RoutingRequest(RequestKind.CHAT, "chat", 200, 300, max_tokens, moments)


@pytest.mark.parametrize("max_tokens", [None, 50])
def test_what_a_target_bills_beyond_its_limit_is_held_for(
    board: SharedLoadTable, max_tokens
) -> None:
    beside = TargetOutput()

    def bound(*, thinks: bool = False, team: str = "") -> int:
        overruns = TargetOverruns(beside, TargetPrompts())
        found = CandidateBuilder(board, PriceBook([PRICE]), stale_s=10.0, overruns=overruns)
        clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
        (api,) = found.build(
            [TARGET], replace(request(max_tokens), asks_to_think=thinks, team=team), [],
            rooms_pusd=[None],
            ceiling_pusd=None, clock=clock,
        )  # fmt: skip
        return api.candidate.bound_pusd

    before = bound()
    beside.observe_overrun("x/m", 500, NOW_S)
    assert bound() - before == 2 * 500 * 600_000
    beside.observe_overrun("x/m", 900, NOW_S, thinks=True)
    assert bound() - before == 2 * 500 * 600_000, "who asks for no thoughts pays for nobody's"
    assert bound(thinks=True) - before == 2 * 900 * 600_000
    assert bound(team="other") == before, "what one team was billed moves no other's hold"


@pytest.mark.parametrize("max_tokens", [100, None])
@pytest.mark.parametrize(("seen", "allowance"), [(0, 5_000), (4_000, 8_000), (10_000, 16_384)])
def test_a_stated_output_beside_the_limit_is_held_and_raised_by_what_was_seen(
    board: SharedLoadTable, max_tokens, seen, allowance
) -> None:
    terms = msgspec.structs.replace(PRICE.terms, reasoning_outside=True, reasoning_limit=5_000)
    listed = msgspec.structs.replace(PRICE, terms=terms)
    beside = TargetOutput()
    beside.observe_overrun("x/m", seen, NOW_S)
    limits = {"x/m": ModelLimits(16_384, 128_000)}
    book = PriceBook([listed])
    overruns = TargetOverruns(beside, TargetPrompts())
    builder = CandidateBuilder(board, book, stale_s=10.0, limits=limits, overruns=overruns)
    api = api_with(builder, None, max_tokens)
    assert api.allowance_tokens == allowance
    output = (max_tokens or 16_384) + allowance
    assert api.candidate.bound_pusd == 300 * 150_000 + output * 600_000


def api_with(
    builder: CandidateBuilder, media: PromptMedia | None, max_tokens: int | None = 10
) -> CandidateSnapshot:
    clock, asked = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15), request(max_tokens)
    (api,) = builder.with_media(media).build(
        [TARGET], asked, [], rooms_pusd=[None], ceiling_pusd=None, clock=clock
    )
    return api


@pytest.mark.parametrize(
    ("rule", "context", "media", "prompt"),
    [
        ("openai-tiles", 128_000, PromptMedia(40, (PictureSize(1024, 1024),), 0, 5_000, 0), 805),
        ("", 128_000, PromptMedia(40, (PictureSize(1024, 1024),), 0, 5_000, 0), 5_040),
        ("", 250, None, 250),
        ("", 128_000, PromptMedia(40, (), 0, 5_000, 1), 128_000),
    ],
)
def test_the_prompts_bound_is_the_targets_own(board, rule, context, media, prompt) -> None:
    terms = msgspec.structs.replace(PRICE.terms, image_rule=rule)
    listed = msgspec.structs.replace(PRICE, terms=terms)
    limits = {"x/m": ModelLimits(100, context)}
    builder = CandidateBuilder(board, PriceBook([listed]), stale_s=10.0, limits=limits)
    api = api_with(builder, media)
    assert api.prompt_bound(request(10)) == prompt
    assert api.candidate.bound_pusd == prompt * 150_000 + 10 * 600_000


PICTURED = PromptMedia(40, (PictureSize(1024, 1024),), 0, 5_000, 0)
FORECAST = PromptMedia(300, (), 0, 5_000, 0, predicted=90)


def test_a_rejected_forecast_is_output_beside_the_limit(board: SharedLoadTable) -> None:
    api = api_with(CandidateBuilder(board, PriceBook([PRICE]), stale_s=10.0), FORECAST)
    assert api.candidate.bound_pusd == 300 * 150_000 + 100 * 600_000


@pytest.mark.parametrize(
    ("media", "overrun", "prompt"),
    [
        (PICTURED, PromptOverrun(pictures=2.0), 40 + 4 * 1_000),
        (PICTURED._replace(others=1), PromptOverrun(pictures=2.0), 40 + 4 * (765 + 5_000)),
        (PICTURED, PromptOverrun(pictures=1e9), 40 + 50_000),
        (PICTURED._replace(text_bound=160, sounds=120), PromptOverrun(sounds=1.5), 805 + 3 * 120),
        (PICTURED._replace(files=1), PromptOverrun(context=150_000), 300_000),
        (PICTURED, PromptOverrun(sounds=3.0, context=150_000), 805),
        (None, PromptOverrun(pictures=9.0), 300),
    ],
)
def test_the_next_prompt_is_held_for_what_was_billed_beyond_the_last(
    board, media, overrun, prompt
) -> None:
    """Red before: such a surplus was claimed, and the next picture was held as before."""
    terms = msgspec.structs.replace(PRICE.terms, image_rule="openai-tiles")
    listed = msgspec.structs.replace(PRICE, terms=terms)
    overruns = TargetOverruns(TargetOutput(), TargetPrompts())
    builder = CandidateBuilder(
        board, PriceBook([listed]), stale_s=10.0, limits={"x/m": ModelLimits(100, 128_000)},
        overruns=overruns,
    )  # fmt: skip
    before = api_with(builder, media)
    overruns.prompts.observe("x/other", overrun, NOW_S)
    assert api_with(builder, media).candidate.bound_pusd == before.candidate.bound_pusd
    overruns.prompts.observe("x/m", overrun, NOW_S)
    api = api_with(builder, media)
    assert api.prompt_bound(request(10)) == prompt
    assert api.candidate.bound_pusd == prompt * 150_000 + 10 * 600_000
