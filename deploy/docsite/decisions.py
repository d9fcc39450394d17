"""Decision records: one file each in `docs/decisions/`, and their generated index.

`python -m deploy.docsite.decisions` (part of `make settings`) writes the index. It first moves the
entries of `DECISIONS.md` that have all parts into files of their own; an entry that lacks a part
stays there, and its number is printed.
"""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
RECORDS_FOLDER: Final = ROOT / "docs" / "decisions"
WAITING_FILE: Final = ROOT / "DECISIONS.md"
PARTS: Final = ("Context", "Decision", "Consequences")
WIDTH: Final = 118  # columns of a line
_ENTRY: Final = re.compile(r"^## (?=\d+\. )", re.MULTILINE)
_PART: Final = re.compile(rf"^\*\*({'|'.join(PARTS)})\.\*\*\s+", re.MULTILINE)
_STATUS: Final = re.compile(r"^Status: (.+)\n", re.MULTILINE)
_NUMBER: Final = re.compile(r"\b\d+\b")
_FIELD: Final = re.compile(r"^- \*\*(Status|Date):\*\* (.+)$", re.MULTILINE)
_INDEX_HEAD: Final = """\
# Decisions

Each record says which problem there was, what was decided, and what follows from it. What a
record decided is not changed after its acceptance: a later one supersedes it or changes it in part.
There is no record where a number is missing. `make settings` writes this list.

| number | decision | status | date |
|---:|---|---|---|
"""


class DecisionError(Exception):
    """A record without its title, its status, its date or one of its parts."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision with its number, title, status, date and the text of its three parts."""

    number: int
    title: str
    status: str
    date: str
    parts: Mapping[str, str]

    @property
    def file_name(self) -> str:
        """Return the name of the record's file: its number and its title."""
        words = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        slug = textwrap.shorten(words.replace("-", " "), 60, placeholder="").replace(" ", "-")
        return f"{self.number:04}-{slug}.md"


def read_record(text: str) -> DecisionRecord:
    """Parse the text of a record's file.

    Raises: `DecisionError` for a file without title, status, date or one of its parts.
    """
    title = re.match(r"# (\d+)\. (.+)\n", text)
    fields = dict(_FIELD.findall(text))
    parts = split_parts(text)
    if title is None or set(fields) != {"Status", "Date"} or set(parts) != set(PARTS):
        raise DecisionError(f"a part is missing: {text.splitlines()[:1]}")
    return DecisionRecord(int(title[1]), title[2], fields["Status"], fields["Date"], parts)


def read_records(folder: Path = RECORDS_FOLDER) -> dict[int, tuple[str, DecisionRecord]]:
    """Return all records and the names of their files, by number."""
    records = {}
    for path in sorted(folder.glob("[0-9]*.md")):
        record = read_record(path.read_text(encoding="utf-8"))
        records[record.number] = (path.name, record)
    return records


def split_parts(text: str) -> dict[str, str]:
    """Return the text of each part that a record has, without line breaks."""
    pieces = _PART.split(text)[1:]
    return {
        name: " ".join(piece.split())
        for name, piece in zip(pieces[::2], pieces[1::2], strict=True)
        if piece.strip()
    }


def record_text(record: DecisionRecord, names: Mapping[int, str]) -> str:
    """Return the text of a record's file. `names` has the file names of all records."""
    status = _NUMBER.sub(lambda match: _linked(int(match[0]), names), record.status)
    lines = [
        f"# {record.number}. {record.title}", "", f"- **Status:** {status}",
        f"- **Date:** {record.date}",
    ]  # fmt: skip
    for part in PARTS:
        wrapped = textwrap.wrap(
            f"**{part}.** {record.parts[part]}", WIDTH,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines += ["", *wrapped]
    return "\n".join(lines) + "\n"


def index_text(records: Mapping[int, tuple[str, DecisionRecord]]) -> str:
    """Return the index of all records, in the order of their numbers."""
    rows = "".join(
        f"| {number} | [{record.title}]({name}) | {record.status} | {record.date} |\n"
        for number, (name, record) in sorted(records.items())
    )
    return _INDEX_HEAD + rows


def waiting_entries(text: str) -> dict[int, str]:
    """Return the entries of `DECISIONS.md` by number. Each text begins with the title."""
    return dict(_numbered(text))


def _numbered(text: str) -> list[tuple[int, str]]:
    """Return numbers and entries in order. Two branches may have used the same number."""
    return [(int(entry.partition(".")[0]), entry) for entry in _ENTRY.split(text)[1:]]


def move_entries(waiting: Path = WAITING_FILE, folder: Path = RECORDS_FOLDER) -> list[int]:
    """Write the complete entries as records. Return the numbers of the entries that stay.

    An entry whose number belongs to another record also stays.
    """
    text = waiting.read_text(encoding="utf-8")
    entries, records = _numbered(text), read_records(folder)
    dates = _first_dates(waiting) if {number for number, _ in entries} - set(records) else {}
    today = datetime.now(UTC).date().isoformat()
    fresh, stay = dict[int, DecisionRecord](), list[tuple[int, str]]()
    for number, entry in entries:
        parts = split_parts(entry)
        known = records[number][1] if number in records else fresh.get(number)
        if known is not None and parts == known.parts:
            continue  # the record exists: a merge may have kept the entry
        if known is not None or set(parts) != set(PARTS):
            stay.append((number, entry))
            continue
        title = entry.partition("\n")[0].partition(". ")[2]
        status = _STATUS.search(entry)
        fresh[number] = DecisionRecord(
            number, title, status[1] if status else "accepted", dates.get(number, today), parts
        )
    names = {number: name for number, (name, _) in records.items()}
    names |= {number: record.file_name for number, record in fresh.items()}
    for record in fresh.values():
        (folder / record.file_name).write_text(record_text(record, names), encoding="utf-8")
    head = _ENTRY.split(text)[0].rstrip("\n") + "\n"
    left = "".join(f"\n## {entry.strip()}\n" for _, entry in sorted(stay))
    waiting.write_text(head + left, encoding="utf-8")
    return sorted(number for number, _ in stay)


def _linked(number: int, names: Mapping[int, str]) -> str:
    return f"[{number}]({names[number]})" if number in names else str(number)


def _first_dates(waiting: Path) -> dict[int, str]:
    """Return the day on which each entry was first committed."""
    log = subprocess.run(
        ["git", "log", "--reverse", "--format=@%ad", "--date=short", "-p", "--", waiting.name],
        check=True, capture_output=True, text=True, cwd=waiting.parent,
    ).stdout  # fmt: skip
    return dict(reversed(list(_dated(log))))


def _dated(log: str) -> Iterator[tuple[int, str]]:
    day = ""
    for line in log.splitlines():
        if line.startswith("@20"):
            day = line[1:]
        elif entry := re.match(r"\+## (\d+)\. ", line):
            yield int(entry[1]), day


def main() -> int:
    """Move complete entries and write the index. Return exit status 1 if an entry stays."""
    stay, records = move_entries(), read_records()
    (RECORDS_FOLDER / "index.md").write_text(index_text(records), encoding="utf-8")
    for number in stay:
        told = f"write {', '.join(PARTS)} (docs/how-to/extend.md)"
        if number in records:
            told = f"{records[number][0]} has this number: take {max(records) + 1}"
        print(f"DECISIONS.md, {number}: {told}")
    return bool(stay)


if __name__ == "__main__":
    sys.exit(main())
