"""Ids are unique, and their order is the order in which they were made."""

from gateway.batches.ids import BatchIds


def test_ids_sort_by_time() -> None:
    times = iter([1, 2, 2**44])
    new_id = BatchIds(lambda: next(times), lambda size: "f" * (2 * size))
    made = [new_id("file-") for _ in range(3)]
    assert made[0] == "file-000000000001" + "f" * 16
    assert made == sorted(made)


def test_ids_differ() -> None:
    new_id = BatchIds()
    assert len({new_id("batch_") for _ in range(1000)}) == 1000
