"""Decision records are complete, short, indexed, and every number that is written leads to one."""

import re
from pathlib import Path

import pytest

from deploy.docsite import decisions
from deploy.docsite.decisions import (
    PARTS,
    RECORDS_FOLDER,
    ROOT,
    DecisionError,
    DecisionRecord,
    index_text,
    move_entries,
    read_record,
    read_records,
    waiting_entries,
)

BODY_LINES, COLUMNS = 25, 120
STATUS = re.compile(
    r"accepted|superseded by \[\d+\]\(\S+\)|accepted, changed in part by (\[\d+\]\(\S+\)(, )?)+"
)
LEFT_OUT = {".git", ".venv", ".breakeven", "build", "node_modules"}
TEXTS = {".py", ".md", ".yaml", ".yml", ".toml", ".sql", ".sh", ".tpl"}
# "decision 12", "decisions 12, 13 and 14"; a count of decisions stands before the word.
REFERENCE = re.compile(r"\b[Dd]ecisions? (\d+(?:(?:, | and | or | to )\d+)*)\b(?![.,]?\d)")
ENTRY = """\
# Decisions

Waiting.

## 7. The client is our own
Status: superseded by 8

**Context.** Clients
are slow.

**Decision.** We write one.

**Consequences.** It is fast.

## 8. A library is used

It came within twice.
"""


@pytest.fixture(scope="module")
def records():
    return read_records()


def test_records_are_short_and_have_a_status_a_day_and_their_parts(records) -> None:
    assert len(records) >= 175
    faults = []
    for name, record in records.values():
        lines = (RECORDS_FOLDER / name).read_text("utf-8").splitlines()
        body = lines[next(n for n, line in enumerate(lines) if line.startswith("**Context.")) :]
        if len(body) > BODY_LINES or max(map(len, body)) > COLUMNS:
            faults.append(f"{name}: {len(body)} lines, {max(map(len, body))} columns")
        if not STATUS.fullmatch(record.status) or not re.fullmatch(r"\d{4}-\d\d-\d\d", record.date):
            faults.append(f"{name}: {record.status}, {record.date}")
        if name[:5] != f"{record.number:04}-":
            faults.append(f"{name}: its number is {record.number}")
    assert faults == []


def test_the_index_is_what_the_records_are(records) -> None:
    written = (RECORDS_FOLDER / "index.md").read_text("utf-8")
    assert written == index_text(records), "run `make settings`"
    assert len(records) == len(list(RECORDS_FOLDER.glob("[0-9]*.md")))  # no number twice


def test_every_number_that_is_written_is_a_decision(records) -> None:
    known = {*records, *waiting_entries((ROOT / "DECISIONS.md").read_text("utf-8"))}
    unknown = [
        f"{path.relative_to(ROOT)}: decision {number}"
        for path in texts(ROOT)
        for match in REFERENCE.finditer(path.read_text("utf-8"))
        for number in re.findall(r"\d+", match[1])
        if int(number) not in known
    ]
    assert unknown == []


def texts(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in LEFT_OUT and not path.is_symlink():
            found += texts(path)
        elif path.suffix in TEXTS and path.is_file() and path.name != Path(__file__).name:
            found.append(path)
    return found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(decision 14).", ["14"]),
        ("decisions 153 and 154; CPU", ["153 and 154"]),
        ("decision 1.5", []),
        ("85 decisions", []),
    ],
)
def test_references_are_found(text: str, numbers: list[str]) -> None:
    assert REFERENCE.findall(text) == numbers


def test_complete_entries_become_records_and_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "_first_dates", lambda _: {7: "2026-11-20"})
    waiting, folder = tmp_path / "DECISIONS.md", tmp_path / "records"
    waiting.write_text(ENTRY)
    folder.mkdir()
    assert move_entries(waiting, folder) == [8]
    name, record = read_records(folder)[7]
    assert name == "0007-the-client-is-our-own.md"
    assert (record.status, record.date) == ("superseded by 8", "2026-11-20")
    assert [record.parts[part] for part in PARTS] == [
        "Clients are slow.", "We write one.", "It is fast.",
    ]  # fmt: skip
    assert list(waiting_entries(waiting.read_text())) == [8]
    assert "It came within twice." in waiting.read_text()
    before = (folder / name).read_bytes()
    waiting.write_text(ENTRY)
    assert move_entries(waiting, folder) == [8]  # an entry that has a record goes
    assert (folder / name).read_bytes() == before


def test_an_entry_whose_number_is_taken_stays(tmp_path: Path, monkeypatch) -> None:
    """Red before: it was gone from the file, and no record had it."""
    monkeypatch.setattr(decisions, "_first_dates", lambda _: {})
    waiting, folder = tmp_path / "DECISIONS.md", tmp_path / "records"
    folder.mkdir()
    waiting.write_text(ENTRY)
    move_entries(waiting, folder)
    other = ENTRY.partition("## 8. ")[0].replace("are slow", "are few")
    waiting.write_text(other)
    assert move_entries(waiting, folder) == [7]
    assert "are few" in waiting.read_text()
    # Of two entries with one number the first has its record.
    ninth = other.replace("## 7. ", "## 9. ")
    waiting.write_text(ninth + ninth.partition("Waiting.\n")[2].replace("are few", "are many"))
    assert move_entries(waiting, folder) == [9]
    assert "are many" in waiting.read_text()
    assert read_records(folder)[9][1].parts["Context"] == "Clients are few."


def test_a_number_that_is_taken_is_told_with_the_next(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(decisions, "RECORDS_FOLDER", tmp_path)
    record = DecisionRecord(7, "It is so", "accepted", "2026-11-20", dict.fromkeys(PARTS, "So."))
    (tmp_path / record.file_name).write_text(decisions.record_text(record, {}))
    monkeypatch.setattr(decisions, "move_entries", lambda: [7])
    monkeypatch.setattr(decisions, "read_records", lambda: read_records(tmp_path))
    assert decisions.main() == 1
    assert capsys.readouterr().out == "DECISIONS.md, 7: 0007-it-is-so.md has this number: take 8\n"


def test_a_record_without_a_part_is_a_fault() -> None:
    with pytest.raises(DecisionError):
        read_record("# 7. The client\n\n- **Status:** accepted\n- **Date:** 2026-11-20\n")
