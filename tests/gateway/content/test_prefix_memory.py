"""A conversation that was read is found again by its bytes alone."""

import json

from gateway.content.prefix_memory import ENTRIES, ReadPrefix, ScannedBeginnings

EMPTY = ReadPrefix({}, 0, 0, "", "")


def encoded(*words: str) -> bytes:
    return json.dumps([{"role": "user", "content": word * 1000} for word in words]).encode()


def test_a_further_turn_goes_on_where_the_last_ended() -> None:
    memory, first = ScannedBeginnings(), encoded("one ", "two ")
    assert memory.find(first) is None
    memory.keep(first, EMPTY)
    end, entry = memory.find(encoded("one ", "two ", "three "))
    assert (end, entry) == (len(first) - 1, EMPTY)
    assert memory.find(first) == (len(first) - 1, EMPTY)


def test_another_beginning_of_the_same_length_is_read_anew() -> None:
    memory = ScannedBeginnings()
    memory.keep(encoded("one ", "two "), EMPTY)
    assert memory.find(encoded("onE ", "two ", "three ")) is None


def test_it_is_bounded() -> None:
    memory = ScannedBeginnings()
    for number in range(ENTRIES + 10):
        memory.keep(encoded(f"{number:05} "), EMPTY)
    assert len(memory._entries) == ENTRIES
    assert sum(memory._lengths.values()) == ENTRIES
