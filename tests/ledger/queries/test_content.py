"""What was found is added up by kind and by what was done."""

import msgspec

from ledger.queries.content import ContentCount, content_found
from ledger.spans import Scope
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000
SPAN = Scope(NOON_US, NOON_US + 1000)


def test_finds_of_served_and_refused_requests_are_added(engine, opened, refused) -> None:
    records = [
        opened(1, content="card=2 email=1; mask"), opened(2, content="card=1; mask"),
        opened(3, content="nothing"), opened(4), opened(5, content="ip=3"),
        msgspec.structs.replace(refused(6), content="card=1; refuse"),
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        assert content_found(connection, SPAN) == [
            ContentCount("card", "mask", 2, 3), ContentCount("card", "refuse", 1, 1),
            ContentCount("email", "mask", 1, 1), ContentCount("ip", "record", 1, 3),
        ]  # fmt: skip
        assert content_found(connection, Scope(NOON_US, NOON_US + 1000, "nobody")) == []
