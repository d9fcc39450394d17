"""What is excused of a disk that failed: opens of that time, where `verify` says that rows lack."""

import pytest
import scene_bad_disk
from account import Books
from crowd import CallerRecord
from scene import SceneFigures

LACKS = "journals: w0-a:1:0: may lack rows after record 7, an unknown amount: a new mount"


def judged(begun_s: float, findings: list[str]) -> list[str]:
    """A try of a request that began then has no row; the disk failed from 10 to 14."""
    found = SceneFigures(lost=0, duplicated=0, difference_pusd=0, overspent_pusd=0)
    found.expect("tries without a row", 1, holds=False)
    found.expect("verify findings", len(findings), holds=not findings)
    entries = [{"request_id": "r1.1", "status": "finished"}]
    said = [CallerRecord("t", begun_s, begun_s + 1, "r1", 200)]
    books = Books([], {}, [], {}, {}, [], [], findings)
    scene_bad_disk.expect_told(found, entries, said, books, [(10.0, 14.0)])
    return found.red


@pytest.mark.parametrize(
    ("begun_s", "findings", "red"),
    [
        (11.0, [LACKS], []),
        (11.0, [], ["tries without a row 1"]),
        (9.0, [LACKS], ["of them begun while the disk was well 1"]),
        (11.0, [LACKS, "postings: x: y"], ["tries without a row 1", "verify findings 2"]),
    ],
)
def test_what_a_failed_disk_took_is_excused_where_it_is_told(begun_s, findings, red) -> None:
    assert judged(begun_s, findings) == red
