"""An event of a row is entered once."""

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from ledger.orm import tables as orm


def test_a_row_is_entered_once(engine) -> None:
    entry = {"at_us": 1, "register": "keys", "row": "k", "event": "made", "said": {}, "leaf": b"x",
             "chain": b"y"}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.RegisterEntryRow), [entry | {"number": 1}])
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(orm.RegisterEntryRow), [entry | {"number": 2}])
