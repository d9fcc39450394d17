"""Request ids: unique and in order of time."""

from gateway.ids import RequestIds


def test_ids_differ_within_and_between_processes() -> None:
    first, second = RequestIds(), RequestIds()
    ids = [make() for make in (first, second) for _ in range(500)]
    assert len(set(ids)) == 1000
    assert all(one.startswith("req_") and one[4:].isalnum() for one in ids)


def test_ids_of_one_process_sort_by_creation() -> None:
    make = RequestIds()
    ids = [make() for _ in range(500)]
    assert ids == sorted(ids)
