"""The server's own account of what it served."""

import json

from backends.simulator.journal import RequestEntry, RequestJournal

ENTRY = RequestEntry(
    id="a", request_id="r", path="/p", model="m", stream=True, status="finished",
    http_status=200, started_s=1.0, duration_s=2.0, completion_tokens=5,
)  # fmt: skip


def test_entries_are_kept_in_memory_and_in_the_file(tmp_path):
    path = tmp_path / "journal"
    journal = RequestJournal(path)
    journal.append(ENTRY)
    journal.append(ENTRY)
    journal.close()
    assert journal.lines() == path.read_bytes()
    assert [json.loads(line)["completion_tokens"] for line in path.read_text().splitlines()] == [
        5,
        5,
    ]


def test_a_file_is_appended_to(tmp_path):
    path = tmp_path / "journal"
    for _ in range(2):
        journal = RequestJournal(path)
        journal.append(ENTRY)
        journal.close()
    assert len(path.read_text().splitlines()) == 2
