"""Sums of attempts equal SQL written here and arithmetic over the records, on both databases."""

import random

import pytest
from sqlalchemy import text

from ledger import queries
from ledger.capacity import Traffic
from ledger.queries import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.records import Compared, Tokens
from ledger.repository import Repository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
SCOPE = Scope(START_US, START_US + 2 * DAY_US)


@pytest.fixture
def traffic(engine, opened, settled):
    """150 attempts over three days, the last outside the scope, written as the gateway's are."""
    rng = random.Random(11)
    pairs = []
    for n in range(150):
        own = rng.random() < 0.6
        tokens = Tokens(
            input=rng.randrange(5_000), cached=rng.randrange(900), cache_write=rng.randrange(9),
            output=rng.randrange(1, 800),
        )  # fmt: skip
        first = opened(
            n,
            opened_us=START_US + rng.randrange(3 * DAY_US),
            team_id=rng.choice(("search", "support")),
            model=rng.choice(("chat-large", "code")),
            backend="own" if own else "api",
            pool="llama" if own else None,
            target="pool:llama/0" if own else "openai/gpt-4o-mini",
            spill_reason=None if own else rng.choice((None, "ttft", "kv_headroom", "loading")),
        )
        last = settled(
            n,
            status=rng.choice(("finished", "finished", "client_gone", "upstream_error")),
            tokens=tokens,
            cost_pusd=rng.choice((None, 0, rng.randrange(9 * 10**18))),
            slo_met=rng.choice((True, True, False, None)),
            engine_us=rng.randrange(10**6) if own else 0,
            compared=(Compared("a/x", 1, 7 * tokens.output), Compared("b/x", 1, tokens.output)),
        )
        pairs.append((first, last))
    records = [record for pair in pairs for record in pair]
    records.append(opened(999, opened_us=START_US + 5, team_id="search"))  # still running
    Repository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    return pairs


def inside(pairs, scope=SCOPE):
    return [
        (first, last)
        for first, last in pairs
        if scope.start_us <= first.opened_us < scope.end_us
        and scope.team in (None, first.team_id)
    ]  # fmt: skip


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


def test_cells_hold_money_beyond_64_bits_exactly(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.cells(connection, SCOPE, bucket_us=DAY_US)
    total = sum(last.cost_pusd or 0 for _, last in inside(traffic))
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
    assert (open_cell.attempts, open_cell.tokens, open_cell.answered) == (1, 0, False)
    settled = [cell for cell in found if cell.status is not None]
    assert sum(cell.attempts for cell in settled) == len(inside(traffic, scope))
    good = sum(
        last.tokens.input + last.tokens.cached + last.tokens.cache_write + last.tokens.output
        for first, last in inside(traffic, scope)
        if first.backend == "own"
        and last.status in queries.ANSWERED
        and last.slo_met is not False
    )  # fmt: skip
    assert sum(cell.tokens for cell in found if cell.avoids) == good


def test_comparisons_count_only_answers_inside_the_slo_as_avoided(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.comparisons(connection, SCOPE)
    assert [(one.model, one.position, one.comparator) for one in found] == [
        ("chat-large", 0, "a/x"), ("chat-large", 1, "b/x"), ("code", 0, "a/x"), ("code", 1, "b/x"),
    ]  # fmt: skip
    own = [(a, b) for a, b in inside(traffic) if a.backend == "own" and a.model == "code"]
    good = [b for _, b in own if b.status in queries.ANSWERED and b.slo_met is not False]
    first = next(one for one in found if (one.model, one.position) == ("code", 0))
    assert first.avoided_pusd == 7 * sum(b.tokens.output for b in good)
    assert first.output_tokens_in_slo == sum(b.tokens.output for b in good)
    every = 7 * sum(b.tokens.output for _, b in own)
    assert first.avoided_pusd + first.missed_pusd == every
    assert not first.scaled


def lacked(first) -> bool:
    """Spilled for lack of capacity."""
    return first.spill_reason in ("ttft", "kv_headroom")


def test_load_counts_what_was_served_and_what_spilled_for_lack_of_capacity(engine, traffic) -> None:
    answered = [(a, b) for a, b in inside(traffic) if b.status in queries.ANSWERED]
    assert any(a.spill_reason == "loading" for a, _ in answered), "there is something to leave out"
    with engine.connect() as connection:
        homes = queries.homes(connection)
        found = queries.load_per_minute(connection, SCOPE, pool="llama", spills=homes)
        other = queries.load_per_minute(connection, SCOPE, pool="other", spills=[])
        code = queries.load_per_minute(connection, SCOPE, pool="llama", spills=["code"])
    assert homes == {"chat-large": "llama", "code": "llama"}
    asked = [b for a, b in answered if a.backend == "own" or lacked(a)]
    assert sum(row.asked_output_tokens for row in found) == sum(b.tokens.output for b in asked)
    served = [b for a, b in answered if a.backend == "own" and b.slo_met is not False]
    assert sum(row.served_output_tokens for row in found) == sum(b.tokens.output for b in served)
    spilled = [b.tokens for a, b in answered if lacked(a)]
    assert sum(row.spilled_output_tokens for row in found) == sum(one.output for one in spilled)
    assert sum(row.spilled_tokens for row in found) == sum(
        one.input + one.cached + one.cache_write + one.output for one in spilled
    )
    assert sum(row.spilled_requests for row in found) == len(spilled)
    assert all(row.start_us % MINUTE_US == 0 for row in found)
    assert [row.start_us for row in found] == sorted(row.start_us for row in found)
    assert other == []
    only = [b.tokens.output for a, b in answered if lacked(a) and a.model == "code"]
    assert sum(row.spilled_output_tokens for row in code) == sum(only)


def test_overflow_is_priced_as_paid_and_at_every_comparator(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.overflowed(connection, SCOPE, spills=["chat-large", "code"])
        none = queries.overflowed(connection, SCOPE, spills=[])
    over = [(a, b) for a, b in inside(traffic) if a.backend == "api" and lacked(a)]
    for model in ("chat-large", "code"):
        mine = [b for a, b in over if a.model == model]
        bought = [b for b in mine if b.cost_pusd is not None]
        answered = [b.tokens.output for b in mine if b.status in queries.ANSWERED]
        rows = {one.comparator: one for one in found if one.model == model}
        assert rows[None].pusd == sum(b.cost_pusd for b in bought)
        assert rows[None].output_tokens == sum(b.tokens.output for b in bought)
        assert (rows["a/x"].position, rows["b/x"].position) == (0, 1)
        assert (rows["a/x"].pusd, rows["b/x"].pusd) == (7 * sum(answered), sum(answered))
        assert rows["a/x"].output_tokens == sum(answered) < rows["a/x"].tokens
    assert len(found) == 6
    assert none == []


def test_traffic_is_the_sums_of_the_same_requests(engine, traffic) -> None:
    with engine.connect() as connection:
        found = queries.traffic(connection, SCOPE, pool="llama", spills=["chat-large", "code"])
        nothing = queries.traffic(connection, SCOPE, pool="other", spills=[])
    tokens = [
        b.tokens
        for a, b in inside(traffic)
        if b.status in queries.ANSWERED and (a.backend == "own" or lacked(a))
    ]
    pairs = [(one.input + one.cached + one.cache_write, one.output) for one in tokens]
    assert found == Traffic(
        len(pairs),
        sum(p for p, _ in pairs),
        sum(one.cached for one in tokens),
        sum(o for _, o in pairs),
        sum(p * o for p, o in pairs),
        sum(o * o for _, o in pairs),
    )
    assert nothing == Traffic(0, 0, 0, 0, 0.0, 0.0)


def test_a_model_of_two_pools_overflows_once(engine, opened, settled) -> None:
    rows = [("a", 2), ("b", 3)]
    numbers = iter(range(9))
    for pool, count in rows:
        for _ in range(count):
            n = next(numbers)
            pair = [
                opened(n, backend="own", pool=pool, target=f"pool:{pool}/0", model="m"), settled(n),
            ]  # fmt: skip
            Repository(engine, host="h").import_records(pair, journal=f"j{n}", at_us=START_US)
    with engine.connect() as connection:
        assert queries.homes(connection) == {"m": "b"}


def test_documents_that_are_ranked_are_no_load_of_a_chat(engine, traffic, opened, settled):
    """The same figures before and after a pool's chat is joined by rankings of its model."""
    spills = {"chat-large", "code"}
    wanted = {"pool": "llama", "spills": spills, "kinds": queries.CONVERSATION}

    def read():
        with engine.connect() as connection:
            return (
                queries.load_per_minute(connection, SCOPE, **wanted),
                queries.traffic(connection, SCOPE, **wanted),
                queries.overflowed(connection, SCOPE, spills=spills, kinds=queries.CONVERSATION),
            )

    before = read()
    records = []
    for n, backend in ((2000, "own"), (2001, "api")):
        records.append(
            opened(
                n, kind="rerank", opened_us=START_US + HOUR_US, model="chat-large",
                backend=backend, pool="llama" if backend == "own" else None,
                spill_reason=None if backend == "own" else "kv_headroom",
            )
        )  # fmt: skip
        records.append(settled(n, status="finished", tokens=Tokens(input=10**6, searches=1)))
    Repository(engine, host="h").import_records(records, journal="k", at_us=START_US)
    assert read() == before
    with engine.connect() as connection:
        whole = queries.traffic(connection, SCOPE, pool="llama", spills=spills)
        cells = queries.cells(connection, SCOPE, bucket_us=DAY_US)
    assert whole.prompt_tokens == before[1].prompt_tokens + 2 * 10**6  # the control: they are there
    ranked = [cell for cell in cells if cell.kind == "rerank"]
    assert sorted(cell.backend for cell in ranked) == ["api", "own"]
    assert sum(cell.input_tokens for cell in ranked) == 2 * 10**6
