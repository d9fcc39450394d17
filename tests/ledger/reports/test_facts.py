"""What is derived from one reading of a span equals arithmetic over the records."""

from ledger.economics.cost import TokenBasis
from ledger.fleet.capacity import TrafficSums
from ledger.journals.records import TokenCounts
from ledger.queries import reads as queries
from ledger.queries.load import NOTHING, loads
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.queries.rollups import rollup_progress
from ledger.reports.facts import comparisons, facts, home_pools, moments
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
SCOPE = Scope(START_US, START_US + 2 * DAY_US)
BOTH, OUTPUT = TokenBasis


def read(connection, scope=SCOPE):
    return facts(connection, scope, rollup_progress(connection))


def test_comparisons_count_only_answers_inside_the_slo_as_avoided(engine, traffic) -> None:
    with engine.connect() as connection:
        found = comparisons(connection, SCOPE)
    assert [(finding.model, finding.position, finding.comparator) for finding in found] == [
        ("chat-large", 0, "a/x"), ("chat-large", 1, "b/x"), ("code", 0, "a/x"), ("code", 1, "b/x"),
    ]  # fmt: skip
    own = [(a, b) for a, b in traffic.inside() if a.backend == "own" and a.model == "code"]
    good = [b for _, b in own if b.status in queries.ANSWERED and b.slo_met is not False]
    first = next(finding for finding in found if (finding.model, finding.position) == ("code", 0))
    assert first.avoided_pusd == 7 * sum(b.tokens.output for b in good)
    assert first.output_tokens_in_slo == sum(b.tokens.output for b in good)
    every = 7 * sum(b.tokens.output for _, b in own)
    assert first.avoided_pusd + first.missed_pusd == every
    assert not first.scaled


def lacked(first) -> bool:
    """Spilled for lack of capacity."""
    return first.spill_reason in ("ttft", "kv_headroom")


def test_load_counts_what_was_served_and_what_spilled_for_lack_of_capacity(engine, traffic) -> None:
    answered = [(a, b) for a, b in traffic.inside() if b.status in queries.ANSWERED]
    assert any(a.spill_reason == "loading" for a, _ in answered), "there is something to leave out"
    with engine.connect() as connection:
        here = rollup_progress(connection)
        home = home_pools(connection, here)
        both, output = (loads(connection, SCOPE, here, basis=basis) for basis in TokenBasis)
    assert home == {"chat-large": "llama", "code": "llama"}
    found, tokens = (item.pool_load(pool="llama", spills=home) for item in (output, both))
    asked = [b for a, b in answered if a.backend == "own" or lacked(a)]
    assert sum(found.asked) == sum(b.tokens.output for b in asked)
    served = [b for a, b in answered if a.backend == "own" and b.slo_met is not False]
    assert sum(found.served) == sum(b.tokens.output for b in served)
    spilled = [b.tokens for a, b in answered if lacked(a)]
    assert sum(found.spilled) == sum(item.output for item in spilled)
    assert sum(tokens.spilled) == sum(
        item.input + item.cached + item.cache_write + item.output for item in spilled
    )
    assert sum(found.spilled_requests) == len(spilled)
    of_pool = [a for a, _ in answered if a.backend == "own" or lacked(a)]
    minutes = {a.opened_us // MINUTE_US for a in of_pool}
    assert (found.start_us, found.seen) == (min(minutes) * MINUTE_US, len(minutes))
    assert len(found.asked) == max(minutes) - min(minutes) + 1
    for minute in minutes:
        mine = [
            b
            for a, b in answered
            if a.backend == "own" or lacked(a)
            if a.opened_us // MINUTE_US == minute
        ]
        assert found.asked[minute - min(minutes)] == sum(b.tokens.output for b in mine)
    assert output.pool_load(pool="other", spills=[]) == NOTHING
    code = output.pool_load(pool="llama", spills=["code"])
    only = [b.tokens.output for a, b in answered if lacked(a) and a.model == "code"]
    assert sum(code.spilled) == sum(only)


def test_overflow_is_priced_as_paid_and_at_every_comparator(engine, traffic) -> None:
    with engine.connect() as connection:
        read_once = read(connection)
    found = read_once.overflowed(spills=["chat-large", "code"])
    none = read_once.overflowed(spills=[])
    over = [(a, b) for a, b in traffic.inside() if a.backend == "api" and lacked(a)]
    for model in ("chat-large", "code"):
        mine = [b for a, b in over if a.model == model]
        bought = [b for b in mine if b.cost_pusd is not None]
        answered = [b.tokens.output for b in mine if b.status in queries.ANSWERED]
        rows = {finding.comparator: finding for finding in found if finding.model == model}
        assert rows[None].pusd == sum(b.cost_pusd for b in bought)
        assert rows[None].output_tokens == sum(b.tokens.output for b in bought)
        assert (rows["a/x"].position, rows["b/x"].position) == (0, 1)
        assert (rows["a/x"].pusd, rows["b/x"].pusd) == (7 * sum(answered), sum(answered))
        assert rows["a/x"].output_tokens == sum(answered) < rows["a/x"].tokens
    assert len(found) == 6
    assert none == []


def test_traffic_is_the_sums_of_the_same_requests(engine, traffic) -> None:
    with engine.connect() as connection:
        read_once = read(connection)
    found = read_once.traffic(pool="llama", spills=["chat-large", "code"])
    nothing = read_once.traffic(pool="other", spills=[])
    tokens = [
        b.tokens
        for a, b in traffic.inside()
        if b.status in queries.ANSWERED and (a.backend == "own" or lacked(a))
    ]
    pairs = [(token.input + token.cached + token.cache_write, token.output) for token in tokens]
    assert found == TrafficSums(
        len(pairs),
        sum(p for p, _ in pairs),
        sum(token.cached for token in tokens),
        sum(o for _, o in pairs),
        sum(p * o for p, o in pairs),
        sum(o * o for _, o in pairs),
    )
    assert nothing == TrafficSums(0, 0, 0, 0, 0.0, 0.0)


def test_a_model_of_two_pools_overflows_once(engine, opened, settled) -> None:
    rows = [("a", 2), ("b", 3)]
    numbers = iter(range(9))
    for pool, count in rows:
        for _ in range(count):
            n = next(numbers)
            pair = [
                opened(n, backend="own", pool=pool, target=f"pool:{pool}/0", model="m"), settled(n),
            ]  # fmt: skip
            LedgerRepository(engine, host="h").import_records(pair, journal=f"j{n}", at_us=START_US)
    with engine.connect() as connection:
        assert home_pools(connection, None) == {"m": "b"}


def test_documents_that_are_ranked_are_no_load_of_a_chat(engine, traffic, opened, settled):
    """The same figures before and after a pool's chat is joined by rankings of its model."""
    spills = {"chat-large", "code"}
    which = {"spills": spills, "kinds": queries.CONVERSATION}

    def figures():
        with engine.connect() as connection:
            once = read(connection)
            load = loads(connection, SCOPE, rollup_progress(connection), basis=BOTH)
        return (
            load.pool_load(pool="llama", **which),
            once.traffic(pool="llama", **which),
            once.overflowed(**which),
        )

    before = figures()
    records = []
    for n, backend in ((2000, "own"), (2001, "api")):
        records.append(
            opened(
                n, kind="rerank", opened_us=START_US + HOUR_US, model="chat-large",
                backend=backend, pool="llama" if backend == "own" else None,
                spill_reason=None if backend == "own" else "kv_headroom",
            )
        )  # fmt: skip
        records.append(settled(n, status="finished", tokens=TokenCounts(input=10**6, searches=1)))
    LedgerRepository(engine, host="h").import_records(records, journal="k", at_us=START_US)
    assert figures() == before
    with engine.connect() as connection:
        whole = read(connection).traffic(pool="llama", spills=spills)
        cells = queries.cells(connection, SCOPE, bucket_us=DAY_US)
    assert whole.prompt_tokens == before[1].prompt_tokens + 2 * 10**6  # the control: they are there
    ranked = [cell for cell in cells if cell.kind == "rerank"]
    assert sorted(cell.backend for cell in ranked) == ["api", "own"]
    assert sum(cell.input_tokens for cell in ranked) == 2 * 10**6


def test_a_teams_facts_are_its_own_and_traffic_everyones(engine, traffic) -> None:
    scope = Scope(SCOPE.start_us, SCOPE.end_us, "search")
    which = {"pool": "llama", "spills": ["chat-large", "code"]}
    with engine.connect() as connection:
        here = rollup_progress(connection)
        everyone, whole = (
            facts(connection, SCOPE, here),
            facts(connection, scope, here, everyone=True),
        )
        alone = facts(connection, scope, here)
        cells = queries.cells(connection, scope, bucket_us=DAY_US)
    assert whole.traffic(**which) == everyone.traffic(**which) != alone.traffic(**which)
    for name in ("cells", "comparisons"):  # in whatever order the database has them
        assert sorted(getattr(whole, name)(), key=repr) == sorted(getattr(alone, name)(), key=repr)
    assert whole.overflowed(spills=["code"]) == alone.overflowed(spills=["code"])
    for figure in ("attempts", "tokens", "cost_pusd", "unpriced", "engine_us"):
        wanted = sum(getattr(cell, figure) for cell in cells)
        assert sum(getattr(cell, figure) for cell in whole.cells()) == wanted
    assert {cell.start_us for cell in whole.cells()} == {0}


def test_moments_are_the_cells_over_time(engine, traffic) -> None:
    with engine.connect() as connection:
        found = moments(connection, SCOPE, rollup_progress(connection), bucket_us=HOUR_US)
        cells = queries.cells(connection, SCOPE, bucket_us=HOUR_US)
    wanted: dict[tuple, list[int]] = {}
    for cell in cells:
        key = (cell.start_us, cell.backend, cell.spill_reason is not None, cell.avoids)
        figures = wanted.setdefault(key, [0, 0, 0])
        for place, more in enumerate((cell.attempts, cell.tokens, cell.cost_pusd)):
            figures[place] += more
    assert [tuple(finding) for finding in found] == [(*key, *wanted[key]) for key in sorted(wanted)]
