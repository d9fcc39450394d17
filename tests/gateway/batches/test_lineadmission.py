"""A line is refused for money that is spent, and waits for money that is held."""

import pytest

from gateway.batches.lineadmission import LineAdmission
from gateway.errors import RequestError
from ledger.budgets.desk import Refusal
from ledger.journals.records import Hold

HELD = Refusal("team:search@month", 100, 5, 0, 10**15)


class Desk:
    """`room`: what is not spent; `answer`: what the desk says to a hold."""

    def __init__(self, answer, room: int | None) -> None:
        self._answer, self._room = answer, room

    async def hold(self, *_):
        return self._answer

    def room(self, _) -> int | None:
        return self._room


async def test_what_is_held_is_waited_for() -> None:
    for room in (30, 31, None):
        with pytest.raises(RequestError) as raised:
            await LineAdmission(Desk(HELD, room)).hold("a", ("team:search",), 30)
        assert raised.value.kind == "not_idle"
        assert HELD.scope in raised.value.message


async def test_what_is_spent_is_final() -> None:
    assert await LineAdmission(Desk(HELD, 29)).hold("a", ("team:search",), 30) == HELD


async def test_with_room_there_are_holds() -> None:
    holds = (Hold("team:search@month", 1, 30),)
    assert await LineAdmission(Desk(holds, 0)).hold("a", ("team:search",), 30) == holds
