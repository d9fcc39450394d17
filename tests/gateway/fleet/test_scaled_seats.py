"""Tags of engines outlive their host: what was wanted starts with it, and nothing else."""

import pytest

from gateway.config.schema_scale import ScaleSection
from gateway.fleet.scaled_seats import SeatTag, is_seat_wanted, read_tags, write_tag

ACTS = ScaleSection(max=2, mode="act")


def test_tags_are_read_as_they_were_written_last(tmp_path):
    assert read_tags(tmp_path, "a/b") == {}
    write_tag(tmp_path, "a/b", 0, SeatTag("a/b.0.k", is_up=True))
    write_tag(tmp_path, "a/b", 1, SeatTag("a/b.1.k", is_up=True))
    write_tag(tmp_path, "a/b", 1, SeatTag("a/b.1.k", is_up=False))
    assert read_tags(tmp_path, "a/b") == {
        0: SeatTag("a/b.0.k", True), 1: SeatTag("a/b.1.k", False),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("scale", "sized", "wanted"),
    [
        (None, True, [True, True, True]),
        (ScaleSection(max=2), True, [True, True, True]),  # advice starts and stops nothing
        (ACTS, False, [True, True, True]),  # it was never sized: what ran runs
        (ACTS, True, [True, False, False]),
    ],
)
def test_a_host_starts_what_the_plan_last_wanted(tmp_path, scale, sized, wanted):
    if sized:
        write_tag(tmp_path, "p", 0, SeatTag("p.0.k", is_up=True))
        write_tag(tmp_path, "p", 1, SeatTag("p.1.k", is_up=False))
    assert [is_seat_wanted(tmp_path, scale, f"pool:p/{place}") for place in range(3)] == wanted
