"""FOCUS files: the sum is the books', and FOCUS' own validator has nothing against them.

Two of its rules cannot be kept by any file: version 1.2.0.1 of its model states no condition for
them, or the opposite one. What their sentences ask for is tested here instead. How its rules judge
1.4: `focus_validation`.
"""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest
from focus_validation import ACCEPTED, FOLLOWING, IMPOSSIBLE, digest_of, validate
from sqlalchemy import text

from ledger.database import snapshot
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.exports.focus_columns import FOCUS_1_2, FOCUS_1_4, FocusLayout
from ledger.spans import DAY_US, HOUR_US, Scope

PASSED_AT_LEAST = 300
LAYOUTS = [FOCUS_1_2, FOCUS_1_4]
HEADS = {each.version: [column.name for column in each.columns] for each in LAYOUTS}


def scope_of(ledger, team: str | None = None) -> Scope:
    return Scope(ledger.START_US, ledger.end_us, team)


def lines_of(
    ledger, scope: Scope, period_us: int = DAY_US, layout: FocusLayout = FOCUS_1_4
) -> list[str]:
    with snapshot(ledger.reader) as connection:
        rows = focus_rows(connection, scope, lambda _: None, period_us=period_us, layout=layout)
        return list(csv_lines(layout.columns, rows))


def table(lines: list[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(lines), newline="")))


def total(rows: list[dict[str, str]], column: str = "BilledCost") -> int:
    return int(sum(Decimal(row[column]) for row in rows).scaleb(12))


def owed(ledger, kind: str = "%") -> int:
    """What the postings say is owed: written by the ledger's writer, not read by the export."""
    query = text("SELECT sum(amount_pusd) FROM postings WHERE account LIKE :account")
    with ledger.reader.connect() as connection:
        return -int(connection.execute(query, {"account": f"payable:{kind}:%"}).scalar_one())


def test_billed_and_effective_are_what_is_owed_to_the_pico_dollar(random_ledger) -> None:
    rows = table(lines_of(random_ledger, scope_of(random_ledger)))
    for column in ("BilledCost", "EffectiveCost"):
        assert total(rows, column) == owed(random_ledger)
        api = [row for row in rows if row["x_Backend"] == "api"]
        assert total(api, column) == owed(random_ledger, "provider")
        charged = [row for row in api if row["ChargeCategory"] == "Usage"]
        assert total(charged, column) == random_ledger.total
    differing = [row for row in rows if row["ChargeCategory"] == "Adjustment"]
    assert {row["BillingAccountId"]: total([row]) for row in differing} == {
        "provider:openai": -1_234_567, "gpu:reserved": 7_000_000_000_001,
    }  # fmt: skip
    for name in {row["BillingAccountId"] for row in rows}:
        mine = [row for row in rows if row["BillingAccountId"] == name]
        query = text("SELECT sum(amount_pusd) FROM postings WHERE account = :account")
        with random_ledger.reader.connect() as connection:
            account = {"account": f"payable:{name}"}
            assert total(mine) == -int(connection.execute(query, account).scalar_one())


def test_hours_and_days_and_parts_of_the_time_add_up_alike(random_sqlite) -> None:
    whole = scope_of(random_sqlite)
    middle_us = whole.start_us + 31 * HOUR_US
    parts = [Scope(whole.start_us, middle_us), Scope(middle_us, whole.end_us)]
    pieces = [row for part in parts for row in table(lines_of(random_sqlite, part))]
    assert total(pieces) == owed(random_sqlite)
    some = Scope(middle_us, middle_us + 3 * HOUR_US)
    by_hour = table(lines_of(random_sqlite, some, HOUR_US))
    assert total(by_hour) == total(table(lines_of(random_sqlite, some)))
    assert len({row["ChargePeriodStart"] for row in by_hour}) == 3
    assert {row["ChargePeriodStart"] for row in table(lines_of(random_sqlite, some))} == {
        "2026-06-02T07:00:00Z"
    }


def test_teams_have_their_own_rows_and_none_of_the_rest(random_sqlite) -> None:
    everything = table(lines_of(random_sqlite, scope_of(random_sqlite)))
    effective = 0
    for team in random_sqlite.TEAMS:
        mine = table(lines_of(random_sqlite, scope_of(random_sqlite, team)))
        assert {row["SubAccountId"].removeprefix("'") for row in mine} == {team}
        effective += total(mine, "EffectiveCost")
    nobody = [row for row in everything if not row["SubAccountId"]]
    assert effective + total(nobody, "EffectiveCost") == owed(random_sqlite)
    assert {row["x_Bearer"] for row in nobody} == {"", "idle", "unavailable", "adjustments"}


def test_the_sentences_of_the_rules_that_no_file_can_keep(random_sqlite) -> None:
    for row in table(lines_of(random_sqlite, scope_of(random_sqlite))):
        committed, usage = row["CommitmentDiscountId"], row["ChargeCategory"] == "Usage"
        assert bool(row["CommitmentDiscountStatus"]) == bool(committed and usage)
        assert row["InvoiceId"] == ""


def away(row: dict[str, str], price: str, cost: str) -> Decimal:
    """By how much a cost differs from price x quantity."""
    if not row[price]:
        return Decimal(0)
    return abs(Decimal(row[price]) * Decimal(row["PricingQuantity"]) - Decimal(row[cost]))


def test_costs_are_price_times_quantity(random_sqlite) -> None:
    """The validator does not look where ChargeClass is empty, which it is in every row."""
    rows = table(lines_of(random_sqlite, scope_of(random_sqlite)))
    for row in rows:
        # A surcharge is rounded once an attempt; quantities of hours have twelve places.
        most = Decimal("1e-8") if "surcharged" in row["SkuId"] else Decimal("1e-11")
        assert away(row, "ContractedUnitPrice", "ContractedCost") <= most
        assert away(row, "ListUnitPrice", "ListCost") <= most
        assert bool(row["ListUnitPrice"]) == (row["ChargeCategory"] != "Adjustment")
    planted = {
        **rows[0],
        "ContractedCost": str(Decimal(rows[0]["ContractedCost"]) - Decimal("0.01")),
    }
    assert away(planted, "ContractedUnitPrice", "ContractedCost") > Decimal("1e-8")


def test_a_negotiated_price_shows_beside_the_public_one(random_sqlite) -> None:
    rows = table(lines_of(random_sqlite, scope_of(random_sqlite)))
    ours = [row for row in rows if row["x_PriceVersion"] == "5" and row["x_TokenKind"] == "input"]
    assert ours
    for row in ours:
        assert (row["ContractedUnitPrice"], row["ListUnitPrice"]) == ("0.000002", "0.000003000001")
        assert Decimal(row["ListCost"]) > Decimal(row["BilledCost"])


def test_the_sentences_that_1_4_added(random_sqlite) -> None:
    """Who serves and hosts is named; a price's name has one SKU, lasts and holds no amount."""
    scope = scope_of(random_sqlite)
    rows = table(lines_of(random_sqlite, scope))
    skus: dict[str, set[str]] = {}
    for row in rows:
        assert row["ServiceProviderName"]
        assert row["HostProviderName"]
        assert row["InvoiceDetailId"] == row["InvoiceId"] == ""
        assert bool(row["SkuPriceId"]) == (row["ChargeCategory"] in {"Usage", "Purchase"})
        skus.setdefault(row["SkuPriceId"], set()).add(row["SkuId"])
        assert row["SkuPriceId"].startswith(row["SkuId"])
        assert "@" not in row["SkuPriceId"].removeprefix(row["SkuId"])
        if not row["CommitmentDiscountId"]:
            assert row["EffectiveCost"] == row["BilledCost"]
        if row["ChargeCategory"] == "Purchase":
            assert Decimal(row["EffectiveCost"]) == 0
    assert {len(parents) for parents in skus.values()} == {1}
    older = table(lines_of(random_sqlite, scope, layout=FOCUS_1_2))
    assert len({row["SkuPriceId"] for row in older}) > len(skus)  # versions and amounts
    assert [row["BilledCost"] for row in older] == [row["BilledCost"] for row in rows]


def test_what_a_commitment_cost_is_what_its_usage_bears(random_sqlite) -> None:
    rows = table(lines_of(random_sqlite, scope_of(random_sqlite)))
    for name in {row["CommitmentDiscountId"] for row in rows} - {""}:
        mine = [row for row in rows if row["CommitmentDiscountId"] == name]
        usage = [row for row in mine if row["ChargeCategory"] == "Usage"]
        bought = [row for row in mine if row["ChargeCategory"] == "Purchase"]
        assert total(usage, "EffectiveCost") == total(bought, "BilledCost") != 0
        states = {row["CommitmentDiscountStatus"] for row in usage}
        assert states <= {"Used", "Unused"}


# ---------------------------------------------------------------- FOCUS' own validator


def sample_of(ledger, layout: FocusLayout) -> list[str]:
    """Some API rows, all others: with every row it takes twice the time."""
    head, *lines = lines_of(ledger, scope_of(ledger), layout=layout)
    others = [line for line in lines if "Own GPUs" in line or "Adjustment" in line]
    return [head, *lines[::23], *others]


def test_the_validator_accepts_it(focus_validator: Path, random_sqlite, tmp_path: Path) -> None:
    """Or has accepted these very bytes before."""
    lines = sample_of(random_sqlite, FOCUS_1_4)
    if digest_of(lines, FOCUS_1_4.version) not in ACCEPTED:
        judge(focus_validator, tmp_path, lines, FOCUS_1_4)


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.version)
def test_asked_again_it_accepts_it(
    focus_validator: Path, random_sqlite, tmp_path: Path, layout: FocusLayout
) -> None:
    judge(focus_validator, tmp_path, sample_of(random_sqlite, layout), layout)


def judge(python: Path, folder: Path, lines: list[str], layout: FocusLayout) -> None:
    failed, passed = validate(python, folder, lines, layout.version)
    assert failed == IMPOSSIBLE | FOLLOWING
    assert passed >= PASSED_AT_LEAST
    digest = digest_of(lines, layout.version)
    print(f"accepted, so that it need not be asked again: {digest}")


@pytest.mark.parametrize("change", [lambda lines: [*lines, lines[3]], lambda lines: lines[:-1]])
def test_control_other_bytes_are_asked_anew(random_sqlite, change) -> None:
    lines = sample_of(random_sqlite, FOCUS_1_4)
    assert digest_of(change(lines), FOCUS_1_4.version) not in ACCEPTED
    assert digest_of(lines, FOCUS_1_2.version) not in ACCEPTED


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.version)
def test_negative_control_the_validator_finds_what_is_wrong(
    focus_validator: Path, random_sqlite, tmp_path: Path, layout: FocusLayout
) -> None:
    """No name for whom to pay, and a quantity without its unit."""
    lines = lines_of(random_sqlite, scope_of(random_sqlite), layout=layout)[:40]
    rows = [line.rstrip("\r\n").split(",") for line in lines]
    provider = "ProviderName" if layout is FOCUS_1_2 else "ServiceProviderName"
    head = HEADS[layout.version]
    rows[5][head.index("ConsumedUnit")] = ""
    rows[7][head.index(provider)] = ""
    planted = [",".join(row) + "\r\n" for row in rows]
    failed, _ = validate(focus_validator, tmp_path, planted, layout.version)
    assert {"ConsumedUnit-C-006-C", f"{provider}-C-003-M"} <= failed


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (lambda lines: [*lines, lines[3]], "a row twice"),
        (lambda lines: lines[:3] + lines[4:], "a row lost"),
        (lambda lines: [*lines[:3], lines[3].replace("0.0", "0.1", 1), *lines[4:]], "a cent"),
    ],
)
def test_negative_control_of_the_sum(random_sqlite, planted, found: str) -> None:
    lines = lines_of(random_sqlite, scope_of(random_sqlite))
    assert total(table(planted(lines))) != owed(random_sqlite), found
