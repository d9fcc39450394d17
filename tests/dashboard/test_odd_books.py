"""Books that nobody fills on purpose: every page is drawn of them, and names stay names.

Names come from keys, files and whoever may ask for `openai/*`: none of them is a picture, a link,
a formula or HTML on somebody's page.
"""

import re
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from sqlalchemy import delete, insert, update

from dashboard import navigation
from deploy import once
from ledger.budgets.entered import BudgetSpec
from ledger.database import make_engine
from ledger.declared import declare
from ledger.journals.records import AttemptOpened, AttemptSettled, RequestRefused, TokenCounts
from ledger.orm import tables as orm
from ledger.writing.repository import LedgerRepository

S, HOUR, USD = 10**6, 3_600 * 10**6, 10**12
PATHS = [place.module.__name__.rpartition(".")[2] for place in navigation.PLACES]
BOOKS = [element for element in PATHS if element not in ("claims", "terms")]
OF_TEAMS = ("answer", "spend")
EVIL = "<img src=x onerror=alert(1)>![p](http://evil.example/p.png)[l](http://evil.example)"
NAMES = {
    "html and markdown": f"{EVIL} `b` $x$ **s** :red[r]",
    "right to left": "\u202e\u05ea\u05de\u05d9\u202c \u0641\u0631\u064a\u0642",
    "long": "team-" + "x" * 180,
}
LARGE_PUSD = 9 * 10**18  # nine million dollars, nearly all that a row holds


def attempt(
    n: int, at_us: int, *, own: bool, **given: object
) -> tuple[AttemptOpened, AttemptSettled]:
    target = "pool:gone/0" if own else "openai/gpt-4o-mini"
    opened = AttemptOpened(
        attempt_id=f"o{n}.1", request_id=f"o{n}", attempt_no=1, opened_us=at_us, key_id="k1",
        user_id=None, team_id="search", org_id="acme", kind="chat", stream=True,
        model="chat-large", target=target, backend="own" if own else "api",
        pool="gone" if own else None, engine="0" if own else None,
        provider=None if own else "openai", upstream_model="m", simulated=False, policy="default",
        policy_version="v1", reason="cheapest", spill_reason=None, price_version=None,
        bound_pusd=LARGE_PUSD, prompt_tokens_estimate=9,
    )  # fmt: skip
    settled = AttemptSettled(
        attempt_id=f"o{n}.1", settled_us=at_us + S, status="finished", http_status=200,
        tokens=TokenCounts(input=9, output=1), basis="reported", cost_pusd=7, ttft_us=None,
        duration_us=0, engine_us=S if own else 0,
    )  # fmt: skip
    mine = {name: value for name, value in given.items() if hasattr(opened, name)}
    theirs = {name: value for name, value in given.items() if hasattr(settled, name)}
    return replace(opened, **mine), replace(settled, **theirs)


@pytest.fixture
def written(tmp_path) -> Callable[..., str]:
    """The address of a ledger that has these attempts and refusals, and nothing else."""

    def write(*records: object) -> str:
        url = once.put_ledger(tmp_path / "ledger.db")
        engine = make_engine(url)
        LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=ago(0))
        engine.dispose()
        return url

    return write


@pytest.fixture
def changed(books) -> Callable[..., str]:
    """Usual books, with something done to them."""

    def change(*statements, days: int = 2, **how: object) -> str:
        filled = books(days=days, peak=3.0, **how)
        engine = make_engine(filled.url)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)
        engine.dispose()
        return filled.url

    return change


def ago(hours: int) -> int:
    return time.time_ns() // 1000 - hours * HOUR


@pytest.fixture
def every_page(page, text_of) -> Callable[..., None]:
    """Draw all pages, those that a team has of a team, too; none of them says what is no number."""

    def draw(url: str, period: str = "30 d") -> None:
        for name in BOOKS:
            for team in (None, "search") if name in OF_TEAMS else (None,):
                shown = text_of(page(name, url, period=period, team=team))
                assert not re.search(r"\b(nan|inf)\b", shown.lower()), (name, team)

    return draw


@pytest.mark.parametrize("period", ["1 h", "30 d"])
def test_nothing_was_ever_asked(every_page, written, period: str) -> None:
    every_page(written(), period)


@pytest.mark.parametrize("own", [True, False])
def test_one_request_is_all_there_is(every_page, written, own: bool) -> None:
    """The pool that answered it is of no configuration any more, its tokens took no time."""
    every_page(written(*attempt(1, ago(1), own=own)))


def test_who_has_no_own_hardware_is_asked_for_no_rate(page, written, text_of) -> None:
    url = written(*attempt(1, ago(1), own=False))
    for team in (None, "search"):
        shown = text_of(page("answer", url, team=team))
        assert "enter the rate" not in shown
        assert "Own GPUs, used" not in shown


def test_an_answer_under_way_is_all_there_is(every_page, written) -> None:
    every_page(written(attempt(1, ago(0), own=True)[0]), "1 h")


NOTHING_KNOWN = dict.fromkeys((
    "running", "waiting", "kv_usage_ppm", "kv_promised_ppm", "prompt_tokens_total",
    "output_tokens_total", "preemptions_total", "prefix_hit_ppm", "busy_us", "step_feedback_ppm",
    "load_ppm", "bid_price_pusd_per_s", "age_us",
))  # fmt: skip
STEPS = ("step_a_s", "step_b_s", "step_c_s", "step_d_s", "step_t0_s")
ODD = {
    "engines that say nothing": (update(orm.EngineSampleRow).values(NOTHING_KNOWN),),
    "capacities of nothing": (update(orm.EngineCapacityRow).values(dict.fromkeys(STEPS, 0.0)),),
    "capacities that are not known": (
        update(orm.EngineCapacityRow).values(dict.fromkeys((*STEPS, "kv_capacity_tokens"))),
    ),
    "a rate of 0": (
        update(orm.GpuContractRow).values(pusd_per_hour=0),
        update(orm.GpuHourRow).values(bill_pusd=0, used_pusd=0, idle_pusd=0, unavailable_pusd=0),
        update(orm.GpuHourTeamRow).values(used_pusd=0, provisional_pusd=0),
    ),
    "a contract that is gone": (delete(orm.GpuContractRow),),
    "a contract that has not begun": (
        update(orm.GpuContractRow).values(recorded_us=2**52),
        delete(orm.GpuHourRow), delete(orm.GpuHourTeamRow),
    ),
    "prices that are gone": (
        delete(orm.PriceVersionRow),
        update(orm.AttemptRow).values(price_version=None, cost_pusd=None, flag="unpriced"),
    ),
    "nothing to compare with": (
        delete(orm.ComparedCostRow),
        update(orm.AttemptRow).values(compared_with=None, compared_pusd=None),
    ),
    "comparators that are free": (update(orm.ComparedCostRow).values(cost_pusd=0),),
    "very large amounts": (
        update(orm.AttemptRow).values(cost_pusd=LARGE_PUSD, input_tokens=2**40),
        update(orm.ComparedCostRow).values(cost_pusd=LARGE_PUSD),
        update(orm.GpuContractRow).values(pusd_per_hour=LARGE_PUSD // 24),
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", list(ODD))
def test_every_page_is_drawn_of_odd_books(every_page, changed, odd: str) -> None:
    every_page(changed(*ODD[odd]))


def test_own_gpus_at_no_cost_are_no_saving(page, changed, text_of) -> None:
    """Pages said what they saved, that 0 tokens a month pay, and advised more of them."""
    no_ops = update(orm.GpuContractRow).values(ops_seconds_per_week=0, ops_pusd_per_hour=0)
    url = changed(*ODD["a rate of 0"], no_ops)
    answer, even = text_of(page("answer", url)), text_of(page("breakeven", url))
    for shown in (answer, even):
        assert "costs $0, and what is free cannot be judged" in shown
        assert "Add to" not in shown
    assert "saved is not known" in answer
    assert not re.search(r"\$\S+ (saved|overspent)", answer)
    assert "there is nothing to break even" in even
    assert not re.search(r"\b0 tokens a month", even)


@pytest.mark.parametrize("which", list(NAMES))
def test_names_stay_names(page, written, text_of, which: str) -> None:
    name, at_us = NAMES[which], ago(1)
    given = {"team_id": name, "model": name, "policy": name, "tags": ((name, name),)}
    records = [
        *attempt(1, at_us, own=False, **given, target=f"openai/{name}", cost_pusd=None),
        *attempt(2, at_us, own=True, **given),
        RequestRefused("x1", at_us, "k1", name, "acme", name, name, "budget", 429, f"team:{name}"),
    ]
    url = written(*records)
    engine = make_engine(url)
    specs = [BudgetSpec(f"team:{name}", "month", USD, hard=True, timezone="UTC")]
    declare(engine, contracts=(), budgets=specs, config=("c", "c"), at_us=ago(0))
    _key(engine, name)
    engine.dispose()
    for path in BOOKS:
        for team in (None, name) if path in OF_TEAMS else (None,):
            test = page(path, url, team=team)
            for text in (*test.markdown, *test.caption, *test.info, *test.warning, *test.error):
                assert not re.search(r"(?<!\\)\]\(http://evil", text.value), (path, text.value)
            for block in test.get("html"):
                assert "<img" not in block.proto.body, path
                assert "<script" not in block.proto.body, path
    test = page("spend", url)
    test.segmented_control(key="moved-by").set_value("model")
    test.toggle(key="tags").set_value(True).run()
    assert not test.exception
    assert name in test.dataframe[0].value["team"].tolist()


def _key(engine, name: str) -> None:
    """A key of a team of an organisation, all three called so."""
    of = {"id": name, "name": name, "created_us": 0}
    key = {**of, "id": "k1", "secret_hash": b"x" * 32, "org_id": name, "team_id": name,
           "scopes": []}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.OrganisationRow).values(of))
        connection.execute(insert(orm.TeamRow).values({**of, "org_id": name}))
        connection.execute(insert(orm.KeyRow).values(key))
