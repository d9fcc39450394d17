"""Rates over HTTP: entered by name with their source, never zero, and taken back."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from gateway.config.settings import parse
from gateway.control.admin.rates import (
    EnterRateInput,
    WithdrawRateInput,
    rates_enter,
    rates_list,
    rates_withdraw,
)
from gateway.control.admin.verb import NoInput, OperationRefused
from gateway.host.prepare import prepare
from ledger.database import make_engine
from ledger.fleet.accrual import midnight_us
from ledger.fleet.paidrates import carry_rates, read_rates

FOR = "/v1/organization/rates"
NOW_US = 1_795_435_200_000_000
SHARED = """
state_dir: {state}
models: {{m: {{targets: ["pool:a", "pool:b", "pool:c"], compare_with: ["openai/gpt-4o-mini"]}}}}
pools:
  a:
    engine: &e {{kind: simulated, model: x, replicas: 1}}
    gpu: {{type: L4, machine: one, share: 2}}
  b: {{engine: *e, gpu: {{type: L4, machine: one}}}}
  c: {{engine: *e, gpu: {{type: L4}}}}
"""


@pytest.fixture
def place(tmp_path):
    (path := tmp_path / "breakeven.yaml").write_text(SHARED.format(state=tmp_path / "state"))
    settings = parse(path.read_text(), name="t")
    ledger = make_engine(prepare(settings, path, {}).runtime.ledger_url)
    yield SimpleNamespace(settings=settings, ledger=ledger, now_us=NOW_US, by="fay")
    ledger.dispose()


def pools(place) -> dict:
    return {entry["pool"]: entry for entry in rates_list.work(place, NoInput())["data"]}


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("rates", scopes=("contracts:apply", "changes"))


def test_a_rate_is_entered_by_name_and_is_in_the_log(stack, finance, patiently) -> None:
    given = {"pool": "embed", "usd_per_hour": "4.25", "source": "contract 2026-17",
             "ops_hours_per_week": 2.5, "ops_usd_per_hour": 95, "note": "renewed"}  # fmt: skip
    made = stack.post(FOR, given, finance.token)
    assert made.status_code == 200, made.text
    (item,) = [p for p in stack.get(FOR, finance.token).json()["data"] if p["pool"] == "embed"]
    assert item["in_force"] == {
        "usd_per_hour": "4.250000000000", "source": "contract 2026-17",
        "ops_hours_per_week": 2.5, "ops_usd_per_hour": "95.000000000000",
    }  # fmt: skip
    assert item["configured"]["usd_per_hour"] == "3.500000000000"
    assert (item["entered"]["by"], item["entered"]["note"]) == (f"key:{finance.key_id}", "renewed")

    def entered() -> list:
        found = stack.get("/v1/organization/changes?limit=100", finance.token).json()["data"]
        mine = "entered", f"key:{finance.key_id}"  # others' stand there, too
        return [each for each in found if (each["register"], each["actor"]) == mine]

    assert patiently(entered)
    back = stack.post(FOR + "/withdraw", {"pool": "embed"}, finance.token)
    assert back.status_code == 200
    contracts = stack.get("/v1/organization/contracts", finance.token).json()["data"]
    assert {c["pool"]: c["usd_per_hour"] for c in contracts}["embed"] == "3.500000000000"


@pytest.mark.parametrize(
    ("given", "param", "words"),
    [
        ({"pool": "none"}, "pool", "The configuration has no pool `none`"),
        ({"usd_per_hour": "0"}, "usd_per_hour", "more than 0"),
        ({"usd_per_hour": "-1"}, "usd_per_hour", "more than 0"),
        ({"usd_per_hour": "1e-13"}, "usd_per_hour", "whole number of pico-USD"),
        ({"usd_per_hour": "NaN"}, None, ""),
        ({"ops_usd_per_hour": "2000000"}, "ops_usd_per_hour", "at most"),
        ({"ops_hours_per_week": "-1"}, "ops_hours_per_week", "from 0 to"),
        ({"since": "2020-01-01"}, "since", "has begun: leave `since` out"),
        ({"since": "2226-11-01"}, "since", "more than 10 years away"),
        ({"since": "9999-12-31"}, "since", "more than 10 years away"),
        ({"since": "soon"}, "since", ""),
        ({"source": ""}, "source", ""),
    ],
)
def test_what_is_no_rate_names_its_member(stack, finance, given, param, words) -> None:
    whole = {"pool": "main", "usd_per_hour": "3", "source": "s", **given}
    answer = stack.post(FOR, whole, finance.token)
    error = answer.json()["error"]
    assert (answer.status_code, words in error["message"]) == (400, True)
    assert param in (None, error["param"])


def test_who_may_only_look_changes_nothing(stack) -> None:
    looks = stack.key("looks", scopes=("contracts",)).token
    assert stack.get(FOR, looks).status_code == 200
    given = {"pool": "main", "usd_per_hour": "9", "source": "s"}
    assert stack.post(FOR, given, looks).status_code == 403


def test_pools_on_one_machine_bear_its_rate_to_the_unit(place) -> None:
    rates_enter.work(place, EnterRateInput("a", "s", usd_per_hour=Decimal(1)))
    rates = read_rates(place.ledger)
    assert rates == {"a": 666_666_666_667, "b": 333_333_333_333, "c": None}


def test_what_is_left_out_stays(place) -> None:
    rates_enter.work(place, EnterRateInput("c", "s", usd_per_hour=Decimal(2)))
    rates_enter.work(
        place, EnterRateInput("c", "t", ops_hours_per_week=Decimal(3), ops_usd_per_hour=Decimal(80))
    )
    terms = pools(place)["c"]["in_force"]
    assert (terms["usd_per_hour"], terms["ops_hours_per_week"]) == ("2.000000000000", 3)


def test_a_rate_of_a_later_day_is_to_come(place) -> None:
    day = datetime.fromtimestamp(NOW_US / 1e6, UTC).date() + timedelta(days=3)
    rates_enter.work(place, EnterRateInput("c", "s", usd_per_hour=Decimal(2), since=day))
    shown = pools(place)["c"]
    assert (shown["in_force"]["usd_per_hour"], len(shown["to_come"])) == (None, 1)
    assert read_rates(place.ledger)["c"] is None
    rates_withdraw.work(place, WithdrawRateInput("c"))
    assert pools(place)["c"]["to_come"] == []
    with pytest.raises(OperationRefused, match="no rate is entered"):
        rates_withdraw.work(place, WithdrawRateInput("c"))


def day_in(days: int) -> date:
    return datetime.fromtimestamp(NOW_US / 1e6, UTC).date() + timedelta(days=days)


def enter(place, pool: str, source: str = "s", since: date | None = None, **said: str) -> dict:
    numbers = {name: Decimal(value) for name, value in said.items()}
    return rates_enter.work(place, EnterRateInput(pool, source, since=since, **numbers))


def terms_of(entry: dict) -> tuple[str | None, str | None, float, str]:
    says = entry["says"]
    return (
        says["usd_per_hour"] and says["usd_per_hour"].rstrip("0"),
        says["source"],
        says["ops_hours_per_week"],
        says["ops_usd_per_hour"].rstrip("0"),
    )


def test_ops_entered_now_are_in_the_rate_that_is_to_come(place) -> None:
    enter(place, "c", "quote 1", usd_per_hour="0.34")
    enter(place, "c", "quote 2", day_in(3), usd_per_hour="0.31")
    said = enter(place, "c", "HR", ops_hours_per_week="1", ops_usd_per_hour="80")
    (coming,) = pools(place)["c"]["to_come"]
    assert terms_of(coming) == ("0.31", "quote 2", 1, "80.")
    assert coming["from_us"] == midnight_us(day_in(3))
    assert (said["carried"], said["to_come"]) == ([coming], [coming])
    assert pools(place)["c"]["in_force"]["usd_per_hour"] == "0.340000000000"
    with place.ledger.begin() as connection:
        carry_rates(connection, NOW_US + 3 * 86_400 * 10**6)
    assert read_rates(place.ledger)["c"] == 310_000_000_000


def test_what_is_left_out_of_a_rate_to_come_is_as_it_will_be_on_that_day(place) -> None:
    enter(place, "c", "HR", day_in(2), ops_hours_per_week="1", ops_usd_per_hour="80")
    enter(place, "c", "quote", day_in(4), usd_per_hour="0.31")
    enter(place, "c", "HR 2", day_in(4), ops_usd_per_hour="90")
    first, second = pools(place)["c"]["to_come"]
    assert terms_of(first) == (None, None, 1, "80.")
    assert terms_of(second) == ("0.31", "quote", 1, "90.")


def test_what_a_later_entry_says_itself_stays(place) -> None:
    enter(place, "c", "quote 2", day_in(3), usd_per_hour="0.31")
    enter(place, "c", "HR", day_in(5), ops_hours_per_week="2", ops_usd_per_hour="80")
    said = enter(place, "c", "quote 1", usd_per_hour="0.34", ops_hours_per_week="1",
                 ops_usd_per_hour="70")  # fmt: skip
    first, second = pools(place)["c"]["to_come"]
    assert terms_of(first) == ("0.31", "quote 2", 1, "70.")
    assert terms_of(second) == ("0.31", "quote 2", 2, "80.")
    assert (said["carried"], said["to_come"]) == ([first], [first, second])


def test_pools_on_one_machine_keep_their_ops_in_the_rate_to_come(place) -> None:
    enter(place, "a", "quote", day_in(3), usd_per_hour="3")
    enter(place, "b", "HR", ops_hours_per_week="4", ops_usd_per_hour="80")
    later = {name: pools(place)[name]["to_come"][0] for name in ("a", "b")}
    assert terms_of(later["a"]) == ("2.", "quote", 0, "0.")
    assert terms_of(later["b"]) == ("1.", "quote", 4, "80.")


def test_the_same_entry_sent_again_changes_nothing_to_come(place) -> None:
    enter(place, "c", "quote 2", day_in(3), usd_per_hour="0.31")
    for _ in range(2):
        said = enter(place, "c", "HR", ops_hours_per_week="1", ops_usd_per_hour="80")
    assert said["carried"] == []
    entries = rates_list.work(place, NoInput())["entries"]
    assert len([entry for entry in entries if entry["pool"] == "c"]) == 3


def test_the_source_of_ops_is_not_the_source_of_the_gpu_rate(place) -> None:
    enter(place, "c", "quote 1", usd_per_hour="0.34")
    enter(place, "c", "HR", ops_hours_per_week="1", ops_usd_per_hour="80")
    item = pools(place)["c"]
    assert (item["in_force"]["source"], item["ops_source"]) == ("quote 1", "HR")
    enter(place, "c", "quote 3", usd_per_hour="0.35")
    item = pools(place)["c"]
    assert (item["in_force"]["source"], item["ops_source"]) == ("quote 3", "HR")
    enter(place, "c", "budget 2027", usd_per_hour="0.36", ops_hours_per_week="2")
    item = pools(place)["c"]
    assert (item["in_force"]["source"], item["ops_source"]) == ("budget 2027",) * 2
    enter(place, "c", "quote 4")
    item = pools(place)["c"]
    assert (item["in_force"]["source"], item["ops_source"]) == ("quote 4", "budget 2027")
    rates_withdraw.work(place, WithdrawRateInput("c"))
    item = pools(place)["c"]
    assert (item["in_force"]["source"], item["ops_source"]) == (None, None)
