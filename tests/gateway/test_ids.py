"""Request ids: unique and in order of time."""

from gateway.ids import BatchIds, RequestIds


def test_ids_differ_within_and_between_processes() -> None:
    first, second = RequestIds(), RequestIds()
    ids = [make() for make in (first, second) for _ in range(500)]
    assert len(set(ids)) == 1000
    assert all(id_.startswith("req_") and id_[4:].isalnum() for id_ in ids)


def test_ids_of_one_process_sort_by_creation() -> None:
    make = RequestIds()
    ids = [make() for _ in range(500)]
    assert ids == sorted(ids)


def test_ids_sort_by_time() -> None:
    times = iter([1, 2, 2**44])
    new_id = BatchIds(lambda: next(times), lambda size: "f" * (2 * size))
    made = [new_id("file-") for _ in range(3)]
    assert made[0] == "file-000000000001" + "f" * 16
    assert made == sorted(made)


def test_ids_differ() -> None:
    new_id = BatchIds()
    assert len({new_id("batch_") for _ in range(1000)}) == 1000
