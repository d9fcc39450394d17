"""Usage and costs by bucket: nothing is counted twice, and costs are the books'."""

from fractions import Fraction

import pytest

from ledger.database import snapshot
from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import SEARCH, SECOND, TOKEN, PriceUnit
from ledger.reports import usage as queries_usage
from ledger.reports.charges import ChargeLine
from ledger.reports.usage import TooManyCells, cost_cells, usage_cells
from ledger.reports.usage_filters import UsageFilters
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.writing.repository import LedgerRepository

CHAT = {"chat", "completion"}


def whole(ledger, team: str | None = None) -> Scope:
    return Scope(ledger.START_US, ledger.end_us, team)


def costs(ledger, scope: Scope, *by: str, items: bool = False, **filters: tuple[str, ...]):
    with snapshot(ledger.reader) as connection:
        return cost_cells(
            connection, scope, UsageFilters(**filters), by=by, items=items, bucket_us=DAY_US
        )


def owed(ledger) -> int:
    query = "SELECT sum(amount_pusd) FROM postings WHERE account LIKE 'payable:%%'"
    with ledger.reader.connect() as connection:
        return -int(connection.exec_driver_sql(query).scalar_one())


@pytest.mark.parametrize("by", [(), ("team",), ("team", "key", "user")])
@pytest.mark.parametrize("items", [False, True])
def test_costs_are_the_books_however_they_are_grouped(
    random_ledger, by: tuple, items: bool
) -> None:
    found = costs(random_ledger, whole(random_ledger), *by, items=items)
    assert sum(cell.pusd for cell in found) == owed(random_ledger)
    places = [(cell.start_us, cell.key, cell.item) for cell in found]
    assert len(set(places)) == len(places)
    assert [cell.start_us for cell in found] == sorted(cell.start_us for cell in found)


def test_items_name_the_target_and_the_kind(random_sqlite) -> None:
    found = {cell.item: cell for cell in costs(random_sqlite, whole(random_sqlite), items=True)}
    assert {"openai/tiers, reasoning", "acme/fee, requests", "pool:reserved, idle"} <= set(found)
    assert found["openai/tiers, reasoning"].unit == "tokens"
    assert found["acme/fee, requests"].unit is None
    assert found["pool:reserved, idle"].unit == "hours"
    assert 0 < found["pool:reserved, idle"].quantity <= 24 * 3


def test_a_team_and_its_filter_are_alike_and_teams_add_up(random_sqlite) -> None:
    total = 0
    for team in random_sqlite.TEAMS:
        bound = costs(random_sqlite, whole(random_sqlite, team), items=True)
        asked = costs(random_sqlite, whole(random_sqlite), items=True, teams=(team,))
        assert bound == asked
        total += sum(cell.pusd for cell in bound)
        assert not [cell for cell in bound if cell.item.endswith(("idle", "unavailable"))]
    nobody = [
        cell.pusd for cell in costs(random_sqlite, whole(random_sqlite), "team")
        if cell.key == (None,)
    ]  # fmt: skip
    assert total + sum(nobody) == owed(random_sqlite)


def test_a_filter_by_keys_is_of_apis_alone(random_sqlite) -> None:
    keys = [costs(random_sqlite, whole(random_sqlite), keys=(key,)) for key in "kl"]
    assert sum(cell.pusd for each_key in keys for cell in each_key) == random_sqlite.total


def test_usage_counts_tokens_of_every_kind_and_each_request_once(engine, opened, settled) -> None:
    tokens = TokenCounts(
        input=10, cached=2, cache_write=3, cache_write_1h=1, output=5, audio_input=4, audio_output=1
    )
    again = {"attempt_id": "r1.2", "request_id": "r1", "attempt_no": 2}
    records = [
        opened(1, holds=()), settled(1, tokens=TokenCounts(), status="rejected", cost_pusd=0),
        opened(1, holds=(), model="other", user_id="u", **again),
        settled(1, attempt_id="r1.2", tokens=tokens, tier="flex"),
        opened(2, holds=(), kind="embedding"), settled(2),
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
    scope = Scope(0, 2**60)

    def usage(*by: str, kinds: set[str] = CHAT, **filters: tuple[str, ...]):
        with engine.connect() as connection:
            return usage_cells(
                connection, scope, UsageFilters(**filters), kinds=kinds, by=by, bucket_us=HOUR_US
            )

    (all_of_it,) = usage()
    assert (all_of_it.requests, all_of_it.prompt_tokens, all_of_it.output_tokens) == (1, 20, 5)
    assert (all_of_it.cached_tokens, all_of_it.cache_write_tokens) == (2, 4)
    assert (all_of_it.audio_input_tokens, all_of_it.audio_output_tokens) == (4, 1)
    grouped = {cell.key: cell.requests for cell in usage("model", "tier", "user")}
    assert grouped == {("chat-large", "default", None): 1, ("other", "flex", "u"): 0}
    assert [cell.output_tokens for cell in usage(users=("u",), models=("other",))] == [5]
    assert usage(teams=("nobody",)) == usage(keys=("nobody",)) == []
    (embedded,) = usage(kinds={"embedding"})
    assert (embedded.requests, embedded.prompt_tokens) == (1, 12)


def test_what_ran_through_a_batch_is_told_from_the_rest(engine, opened, settled) -> None:
    name = "batch_0190-7-1"
    records = [
        opened(1, holds=()), settled(1),
        opened(2, holds=(), attempt_id=f"{name}.1", request_id=name),
        settled(2, attempt_id=f"{name}.1", tokens=TokenCounts(input=70, output=9)),
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)

    def usage(*by: str, batch: bool | None = None):
        with engine.connect() as connection:
            return usage_cells(
                connection, Scope(0, 2**60), UsageFilters(batch=batch), kinds=CHAT, by=by,
                bucket_us=HOUR_US,
            )  # fmt: skip

    assert [cell.output_tokens for cell in usage(batch=True)] == [9]
    assert [cell.output_tokens for cell in usage(batch=False)] == [5]
    assert {cell.key: cell.requests for cell in usage("batch")} == {(True,): 1, (False,): 1}
    assert {type(cell.key[0]) for cell in usage("batch")} == {bool}


def test_an_answer_has_a_limit(random_sqlite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries_usage, "CELLS_LIMIT", 3)
    with pytest.raises(TooManyCells):
        costs(random_sqlite, whole(random_sqlite), "team", items=True)
    scope = whole(random_sqlite)
    with snapshot(random_sqlite.reader) as connection, pytest.raises(TooManyCells):
        usage_cells(connection, scope, UsageFilters(), kinds=CHAT, by=["team"], bucket_us=HOUR_US)


THOUSAND = PriceUnit("Thousand Characters", "1K characters", "1K characters", (), counts=1_000)


@pytest.mark.parametrize(
    ("unit", "quantity", "counted"),
    [
        (None, 2, (2, None)),
        (TOKEN, 7, (7, "tokens")),
        (SEARCH, 3, (3, None)),
        (SECOND, 5_400, (1.5, "hours")),
        (SECOND, Fraction(9, 2), (0.00125, "hours")),
        (THOUSAND, Fraction(3, 2), (1.5, "1K characters")),
        (THOUSAND, 2, (2, "1K characters")),
    ],
)
def test_a_part_of_a_unit_is_counted(unit, quantity, counted) -> None:
    line = ChargeLine("x", unit, quantity, Fraction(1), Fraction(1), 1, 1)
    assert queries_usage._counted(line) == counted
