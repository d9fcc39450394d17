"""The sheet of a ledger: rates in force, each model's own price, and what may not leave stays."""

from fractions import Fraction

import pytest
from sqlalchemy import delete, insert, update

from ledger.economics.cost import TokenBasis
from ledger.economics.fleet_verdict import FleetVerdict, VerdictAction
from ledger.fleet.model_routes import ModelRoute, RouteApi, record_routes
from ledger.journals.records import ComparedCost, TokenCounts
from ledger.manual_entries import OPS_SOURCE, ManualEntry, enter
from ledger.orm import tables as orm
from ledger.reports.survey import survey
from ledger.spans import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.sums.rollups import Rollups
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
HOURS = 1
NOW_US = START_US + HOURS * HOUR_US
USD = 10**12
KEPT = {"chat": 600, "summ": 300, "contracts": 100}  # tokens a minute
PRICES = {"a/chat": 2_000_000, "b/summ": 50_000}  # pico-USD a token
ROUTES = [
    ModelRoute("chat", "any", (RouteApi("a/chat", "a/chat"), RouteApi("b/summ", "none"))),
    ModelRoute("summ", "any", (RouteApi("b/summ", "b/summ", is_same_weights=True),)),
    ModelRoute("contracts", "internal_only", ()),
]
BOUGHT = 100 * PRICES["b/summ"]  # of every other minute, for lack of room


@pytest.fixture
def fill(engine, opened, settled):
    """An hour of three models on two engines; every other minute buys 100 tokens of `summ`."""

    def write(*, routes=ROUTES, team="search", **contract: object) -> None:
        records = []
        for minute in range(HOURS * 60):
            at_us = START_US + minute * MINUTE_US
            rows = [(model, tokens, True) for model, tokens in KEPT.items()]
            rows += [("summ", 100, False)] if minute % 2 else []
            for place, (model, tokens, own) in enumerate(rows):
                number = 10 * minute + place
                target = "pool:p/0" if own else "b/summ"
                records.append(
                    opened(
                        number, opened_us=at_us + place, model=model, target=target, team_id=team,
                        backend="own" if own else "api", pool="p" if own else None,
                        spill_reason=None if own else "ttft",
                    )
                )  # fmt: skip
                compared = tuple(
                    ComparedCost(name, 1, tokens * price) for name, price in PRICES.items()
                )
                records.append(
                    settled(
                        number, settled_us=at_us + place + 1, slo_met=True,
                        tokens=TokenCounts(input=tokens - 10, output=10),
                        cost_pusd=1 if own else BOUGHT, engine_us=tokens * 1_000 if own else 0,
                        compared=compared,
                    )
                )  # fmt: skip
        LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOW_US)
        record_routes(engine, routes, at_us=1)
        row = {
            "pool": "p", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 2,
            "billing": "reserved", "pusd_per_hour": USD // 2, "ops_seconds_per_week": 0,
            "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": START_US,
        }  # fmt: skip
        with engine.begin() as connection:
            connection.execute(insert(orm.GpuContractRow), row | contract)

    return write


def read(engine, **how: object) -> FleetVerdict:
    scope = Scope(NOW_US - DAY_US, NOW_US, how.pop("team", None))
    with engine.connect() as connection:
        found = survey(
            connection, scope, bucket_us=DAY_US, basis=how.pop("basis", TokenBasis.INPUT_OUTPUT)
        )
    return found.verdict


def test_each_model_is_priced_at_its_own_api_and_what_stays_needs_engines(engine, fill) -> None:
    fill()
    (pool,) = read(engine).pools
    pace = Fraction(720, HOURS)
    bought = HOURS * 30 * BOUGHT * pace
    kept = HOURS * 60 * (600 * PRICES["a/chat"] + 300 * PRICES["b/summ"]) * pace
    assert pool.options[0].api_pusd == kept + bought
    assert pool.options[0].why_not == "contracts may not leave"
    assert pool.now.api_pusd == bought
    assert pool.now.total_pusd == 2 * 720 * USD // 2 + bought
    assert pool.now.ops_pusd is None
    assert pool.action is VerdictAction.REDUCE
    assert [model.substitute for model in pool.assumptions.models] == ["a/chat", None, None]


def test_sums_and_rows_say_the_same(engine, fill) -> None:
    fill()
    before = read(engine)
    Rollups(engine).rebuild()
    assert read(engine) == before


def test_only_everyone_has_a_verdict_and_dollars_have_no_basis(engine, fill) -> None:
    fill()
    assert read(engine, team="search") is None
    assert read(engine, basis=TokenBasis.OUTPUT) is None, "pages read it on input + output"


def test_teams_that_stay_inside_are_a_class_of_their_own(engine, fill) -> None:
    with engine.begin() as connection:
        organisation = {"id": "acme", "name": "acme", "created_us": 1}
        connection.execute(insert(orm.OrganisationRow), organisation)
        connection.execute(
            insert(orm.TeamRow),
            {"id": "legal", "org_id": "acme", "name": "legal", "residency": "internal_only",
             "created_us": 1},
        )  # fmt: skip
    fill(team="legal")
    (pool,) = read(engine).pools
    assert "chat of teams and keys that stay inside" in pool.stays


def keep_inside(engine, *keys: str) -> None:
    with engine.begin() as connection:
        organisation = {"id": "acme", "name": "acme", "created_us": 1}
        connection.execute(insert(orm.OrganisationRow), organisation)
        team = {"id": "search", "org_id": "acme", "name": "search", "created_us": 1}
        connection.execute(insert(orm.TeamRow), team)
        for key in keys:
            connection.execute(
                insert(orm.KeyRow),
                {"id": key, "secret_hash": bytes(32), "name": key, "org_id": "acme",
                 "team_id": "search", "scopes": ["inference"], "residency": "internal_only",
                 "created_us": 1},
            )  # fmt: skip


@pytest.mark.parametrize("summed", [False, True])
def test_keys_that_stay_inside_keep_their_tokens_there(engine, fill, summed) -> None:
    keep_inside(engine, "k1")
    fill()
    if summed:
        Rollups(engine).rebuild()
    (pool,) = read(engine).pools
    assert "chat of teams and keys that stay inside" in pool.stays
    assert "summ of teams and keys that stay inside" in pool.stays
    assert not pool.options[0].allowed, "all own traffic is of that key"


def test_another_key_that_stays_inside_binds_nothing_of_these(engine, fill) -> None:
    keep_inside(engine, "k2")
    fill()
    assert read(engine).pools[0].stays == ("contracts",)


def test_without_routes_only_what_was_seen_at_an_api_may_leave(engine, fill) -> None:
    fill(routes=[])
    (pool,) = read(engine).pools
    assert pool.stays == ("chat (no API of it is known)", "contracts (no API of it is known)")


def test_a_route_without_a_known_price_is_not_free(engine, fill) -> None:
    """The class says why it stays: "chat may leave" stood beside "chat may not leave"."""
    fill(routes=[ModelRoute("chat", "any", (RouteApi("c/odd", "c/odd"),)), *ROUTES[1:]])
    (pool,) = read(engine).pools
    assert "chat (its price elsewhere is not known)" in pool.stays


def test_ops_with_hours_and_no_price_of_an_hour_are_unknown(engine, fill) -> None:
    fill(ops_seconds_per_week=7_200)
    assert "ops" in read(engine).sheet.unknown


def test_a_pool_without_a_rate_has_no_verdict(engine, fill) -> None:
    fill(pusd_per_hour=None)
    found = read(engine)
    assert found.action is None
    assert found.pools[0].why_none == "enter your GPU rate"


def test_failed_attempts_are_no_traffic_to_judge_by(engine, fill) -> None:
    """Four failures once read as "leave": no token was counted of what had been asked for."""
    fill()
    assert read(engine).pools[0].action is not None
    row = orm.AttemptRow
    with engine.begin() as connection:
        connection.execute(update(row).values(status="failed"))
    (pool,) = read(engine).pools
    assert pool.action is None
    assert (pool.assumptions.answers, pool.assumptions.failures) == (0, 210)
    assert "0 requests were answered and 210 failed or were refused in 1 billed hours" in str(
        pool.why_none
    )


def test_refused_requests_are_demand_that_was_not_answered(engine, fill) -> None:
    """A week in which the engine was away would else read as a week without traffic."""
    fill()
    with engine.begin() as connection:
        connection.execute(delete(orm.AttemptRow))
        refusal = {
            "refused_us": START_US, "key_id": "k", "team_id": "search", "org_id": "o",
            "policy": "p", "reason": "unhealthy", "http_status": 503,
        }  # fmt: skip
        connection.execute(
            insert(orm.RefusalRow),
            [{**refusal, "request_id": f"r{number}", "model": "chat"} for number in range(3)],
        )
    (pool,) = read(engine).pools
    assert (pool.assumptions.answers, pool.assumptions.failures) == (0, 3)


def test_ops_name_their_own_source_and_the_rate_keeps_its_own(engine, fill) -> None:
    """Ops that were entered alone gave their source to the GPU rate."""
    fill(source="quote 1", ops_seconds_per_week=3_600, ops_pusd_per_hour=80 * USD)

    def origins() -> tuple[str | None, str | None]:
        lines = {line.name: line for line in read(engine).sheet.lines}
        return lines["gpu_rate"].origin, lines["ops"].origin

    assert origins() == ("quote 1", None)
    with engine.begin() as connection:
        says = {"source": "HR"}
        enter(connection, ManualEntry(0, OPS_SOURCE + "p", says, START_US, START_US, "fay"))
        later_us = NOW_US + DAY_US
        enter(
            connection,
            ManualEntry(0, OPS_SOURCE + "p", {"source": "HR 2"}, later_us, START_US, "fay"),
        )
    assert origins() == ("quote 1", "HR")
