"""Sums of attempts equal SQL written here and arithmetic over the records, on both databases."""

from sqlalchemy import text

from ledger.queries import reads as queries
from ledger.queries.attempts import senders_of_bills
from ledger.queries.reads import DAY_US, HOUR_US, Scope

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
SCOPE = Scope(START_US, START_US + 2 * DAY_US)


def test_cells_add_up_to_the_same_as_sql(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.cells(connection, SCOPE, bucket_us=HOUR_US)
        rows = connection.execute(
            text(
                "SELECT backend, count(*), sum(coalesce(output_tokens, 0)),"
                " sum(coalesce(input_tokens, 0) + coalesce(cached_tokens, 0)"
                " + coalesce(cache_write_tokens, 0) + coalesce(cache_write_1h_tokens, 0)),"
                " sum(CASE WHEN settled_us IS NOT NULL AND cost_pusd IS NULL THEN 1 ELSE 0 END)"
                " FROM attempts WHERE opened_us >= :a AND opened_us < :b GROUP BY backend"
            ),
            {"a": SCOPE.start_us, "b": SCOPE.end_us},
        )
        wanted = {row[0]: tuple(map(int, row[1:])) for row in rows}
    for backend, figures in wanted.items():
        mine = [cell for cell in found if cell.backend == backend]
        assert figures == (
            sum(cell.attempts for cell in mine),
            sum(cell.output_tokens for cell in mine),
            sum(cell.input_tokens for cell in mine),
            sum(cell.unpriced for cell in mine),
        )


def test_a_cell_has_the_provider_of_its_target(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.cells(connection, SCOPE, bucket_us=DAY_US)
    assert {cell.provider for cell in found if cell.backend == "own"} == {None}
    apis = [cell for cell in found if cell.backend == "api"]
    assert apis
    assert all(cell.target.startswith(f"{cell.provider}/") for cell in apis)


def test_bills_come_from_who_the_latest_attempt_names(engine, traffic) -> None:
    """Of two targets of one account; a target without attempts goes by its name."""
    owners = {opened.target: opened.provider for opened, _ in traffic.inside() if opened.provider}
    other, account = max(owners), min(owners.values())
    with engine.connect() as connection, connection.begin() as change:
        assert senders_of_bills(connection, owners) == sorted(set(owners.values()))
        newest = "SELECT max(opened_us) FROM attempts WHERE target = :target"
        connection.execute(
            text(f"UPDATE attempts SET provider = :name WHERE target = :target"
                 f" AND opened_us = ({newest})"),
            {"name": account, "target": other},
        )  # fmt: skip
        assert senders_of_bills(connection, [other, "gone/m"]) == sorted([account, "gone"])
        change.rollback()


def test_cells_hold_money_beyond_64_bits_exactly(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.cells(connection, SCOPE, bucket_us=DAY_US)
    total = sum(last.cost_pusd or 0 for _, last in traffic.inside())
    assert total > 2**63
    assert sum(cell.cost_pusd for cell in found) == total
    assert all(type(cell.cost_pusd) is int and type(cell.engine_us) is int for cell in found)


def test_cells_are_cut_by_bucket_team_and_state(engine, traffic) -> None:
    scope = Scope(SCOPE.start_us, SCOPE.end_us, "search")
    with engine.connect() as connection:
        found = queries.cells(connection, scope, bucket_us=HOUR_US)
    assert {cell.team for cell in found} == {"search"}
    assert all(cell.start_us % HOUR_US == 0 for cell in found)
    (open_cell,) = [cell for cell in found if cell.status is None]
    assert (open_cell.attempts, open_cell.tokens, open_cell.is_answered) == (1, 0, False)
    settled = [cell for cell in found if cell.status is not None]
    assert sum(cell.attempts for cell in settled) == len(traffic.inside(scope))
    good = sum(
        last.tokens.input + last.tokens.cached + last.tokens.cache_write + last.tokens.output
        for first, last in traffic.inside(scope)
        if first.backend == "own"
        and last.status in queries.ANSWERED
        and last.slo_met is not False
    )  # fmt: skip
    assert sum(cell.tokens for cell in found if cell.avoids) == good


def test_what_was_spent_by_bucket_and_group(engine, traffic) -> None:
    with engine.connect() as connection:
        found = {
            by: queries.spent(connection, SCOPE, by=by, bucket_us=HOUR_US)
            for by in ("team", "model", "backend")
        }
        cells = queries.cells(connection, SCOPE, bucket_us=HOUR_US)
    for by, lines in found.items():
        wanted: dict[tuple[int, str], int] = {}
        for cell in cells:
            at = (cell.start_us, getattr(cell, {"backend": "target"}.get(by, by)))
            wanted[at] = wanted.get(at, 0) + cell.cost_pusd
        assert {(line.start_us, line.name): line.cost_pusd for line in lines} == wanted
