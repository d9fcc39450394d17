"""What a sample says of load and room when parts of it are not told."""

import pytest

from backends.enginesample import EngineSample

NOTHING = dict.fromkeys(EngineSample.__dataclass_fields__) | {"dialect": "tgi"}


@pytest.mark.parametrize(
    ("running", "waiting", "load"), [(3, 2, 5), (3, None, 3), (None, 2, 2), (None, None, None)]
)
def test_load_is_what_is_told_and_unknown_when_nothing_is(running, waiting, load):
    assert EngineSample(**NOTHING | {"running": running, "waiting": waiting}).load == load


@pytest.mark.parametrize(
    ("usage", "capacity", "free"), [(0.25, 400, 300), (None, 400, None), (0.25, None, None)]
)
def test_room_is_unknown_where_either_part_is(usage, capacity, free):
    told = {"kv_usage_ratio": usage, "kv_capacity_tokens": capacity}
    assert EngineSample(**NOTHING | told).kv_free_tokens == free
