import pytest

from gateway.config.pool_seats import PREFILL_BUDGET, seat_count, seats_of, started_count
from gateway.config.schema import PoolSection


def pool(roles=None, **engine) -> PoolSection:
    return PoolSection.model_validate({"engine": engine, "gpu": {"type": "CPU"}, "roles": roles})


@pytest.mark.parametrize(
    ("engine", "roles", "seats", "started"),
    [
        ({"replicas": 2}, None, [("whole", None, 0), ("whole", None, 1)], 2),
        ({"endpoints": ["http://10.0.0.1"]}, None, [("whole", "http://10.0.0.1", None)], 0),
        (
            {"replicas": 1, "endpoints": ["http://10.0.0.1"]},
            {"prefill": 1, "decode": {"replicas": 1, "endpoints": ["http://10.0.0.2"]}},
            [("whole", None, 0), ("whole", "http://10.0.0.1", None), ("prefill", None, 1),
             ("decode", None, 2), ("decode", "http://10.0.0.2", None)],
            3,
        ),
        ({}, {"prefill": 2, "decode": 1},
         [("prefill", None, 0), ("prefill", None, 1), ("decode", None, 2)], 3),
    ],
)  # fmt: skip
def test_each_engine_has_its_seat(engine, roles, seats, started) -> None:
    section = pool(roles, **engine)
    found = seats_of(section)
    assert [(seat.role, seat.url, seat.port_index) for seat in found] == seats
    assert [seat.number for seat in found] == list(range(len(seats)))
    assert (seat_count(section), started_count(section)) == (len(seats), started)


def test_steps_may_be_of_unlike_sizes() -> None:
    roles = {"prefill": 1, "decode": {"replicas": 1, "prefill_budget_tokens": 512},
             "whole_budget_tokens": [8192, 2048]}  # fmt: skip
    sizes = [seat.budget_tokens for seat in seats_of(pool(roles, replicas=2))]
    assert sizes == [8192, 2048, PREFILL_BUDGET, 512]
    assert [seat.budget_tokens for seat in seats_of(pool(replicas=1))] == [None]
