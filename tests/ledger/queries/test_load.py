"""Minutes of a load are the same from packed hours, from rows, and across their border."""

from ledger.economics.cost import TokenBasis
from ledger.queries.load import loads
from ledger.queries.rollups import rollup_progress
from ledger.spans import HOUR_US, MINUTE_US, Scope
from ledger.sums.rollups import Rollups

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % HOUR_US
SPAN = Scope(START_US, START_US + 2 * HOUR_US + MINUTE_US)


def test_minutes_from_hours_and_rows(engine, opened, settled, write, seal_all) -> None:
    own = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}
    spilled = {"spill_reason": "ttft", "holds": ()}
    for number, fields in enumerate((own, own, spilled, {"spill_reason": "only", "holds": ()})):
        at = START_US + number * MINUTE_US // 2
        write(engine, opened(number, opened_us=at, **fields), settled(number, slo_met=number != 1))
    late = START_US + 2 * HOUR_US
    write(engine, opened(7, opened_us=late, **own), settled(7))

    def load():
        which = {"pool": "chat", "spills": ["chat-large"], "kinds": ["chat"]}
        with engine.connect() as connection:
            here = rollup_progress(connection)
            return [
                loads(connection, SPAN, here, basis=basis).pool_load(**which)
                for basis in TokenBasis
            ]

    both, output = load()
    for item, each in ((both, 17), (output, 5)):
        assert (item.start_us, item.seen, len(item.asked)) == (START_US, 3, 121)
        assert item.asked[:2] == [2 * each, each]
        assert item.asked[120] == item.served[120] == each
        assert item.served[:2] == [each, 0]
        assert item.spilled[:2] == [0, each]
        assert item.spilled_requests[:2] == [0, 1]
        assert sum(item.asked) == 4 * each
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    with engine.connect() as connection:
        assert rollup_progress(connection) is not None
    assert load() == [both, output]


def test_full_and_sparse_hours_are_read_alike(engine, opened, settled, write, seal_all) -> None:
    """Of an hour in which every minute was asked something, whole columns are added."""
    own = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}
    for number in range(75):
        at = START_US + number * MINUTE_US
        team = {"team_id": f"t{number % 2}"}
        write(engine, opened(number, opened_us=at, **own, **team), settled(number))

    def load(team):
        with engine.connect() as connection:
            scope = Scope(SPAN.start_us, SPAN.end_us, team)
            found = loads(connection, scope, rollup_progress(connection), basis=TokenBasis.OUTPUT)
        return found.pool_load(pool="chat", spills=())

    before = [load(team) for team in (None, "t1")]
    assert [item.seen for item in before] == [75, 37]
    assert before[0].asked == [5] * 75
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    assert [load(team) for team in (None, "t1")] == before
