"""Minutes of a load are the same from packed hours, from rows, and across their border."""

from ledger.queries_load import Minute, load_per_minute
from ledger.queries_scope import HOUR_US, MINUTE_US, Scope
from ledger.rollups import Rollups

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

    def minutes():
        which = {"pool": "chat", "spills": ["chat-large"], "kinds": ["chat"]}
        with engine.connect() as connection:
            return load_per_minute(connection, SPAN, **which)

    wanted = [
        Minute(START_US, 34, 10, 17, 5, 0, 0, 0),
        Minute(START_US + MINUTE_US, 17, 5, 0, 0, 17, 5, 1),
        Minute(late, 17, 5, 17, 5, 0, 0, 0),
    ]
    assert minutes() == wanted
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    assert minutes() == wanted
