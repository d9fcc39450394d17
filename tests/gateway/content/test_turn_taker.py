"""Long work leaves turns to others, short work does not."""

import asyncio
import time

from gateway.content.turn_taker import LONGEST_S, TurnTaker


async def test_others_have_a_turn_after_a_while_alone() -> None:
    turns, others = TurnTaker(), []
    other = asyncio.create_task(_note(others))
    await turns.rest()
    assert others == []
    until_s = time.perf_counter() + 2 * LONGEST_S
    while time.perf_counter() < until_s:
        pass
    await turns.rest()
    assert others == ["turn"]
    await other


async def _note(turns: list[str]) -> None:
    turns.append("turn")
