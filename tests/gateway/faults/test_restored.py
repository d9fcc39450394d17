"""A copy of the ledger made while it works, and going back to it: docs/how-to/back-up.md."""

import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from ledger.database import open_readonly
from ledger.orm.tables import SealRow
from ledger.seals.sealer import head
from ledger.verify.checks import verify
from ledger.verify.heads import entry_is_there

BACKUP = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "back-up.md"
SOMEWHERE = "postgresql://HOST/breakeven"


class Database(Protocol):
    """Where a host keeps its ledger."""

    changes: dict  # of the host's configuration

    def copy(self, state: Path) -> None: ...

    def put_back(self, state: Path) -> None:
        """In place of what is there."""


class Sqlite:
    def __init__(self, folder: Path) -> None:
        self.changes: dict = {}
        self.kept = folder / "copy.db"

    def copy(self, state: Path) -> None:
        (line,) = [
            each_line
            for each_line in BACKUP.read_text().splitlines()
            if each_line.startswith("python3 -c")
        ]
        _, *words, source, target = shlex.split(line)
        assert (source, target) == (".breakeven/ledger.db", "copy.db")
        subprocess.run([sys.executable, *words, state / "ledger.db", self.kept], check=True)

    def put_back(self, state: Path) -> None:
        for end in ("", "-wal", "-shm"):
            (state / f"ledger.db{end}").unlink(missing_ok=True)
        shutil.copy(self.kept, state / "ledger.db")


class Postgres:
    def __init__(self, server, binaries: Path, folder: Path) -> None:
        self.server, self.binaries, self.folder = server, binaries, folder
        self.name = server.create()
        self.changes = {"ledger": {"url": server.url(self.name)}}

    def copy(self, state: Path) -> None:
        self._do("pg_dump")

    def put_back(self, state: Path) -> None:
        self.server.drop(self.name)
        self.server.create(self.name)
        self._do("pg_restore")

    def _do(self, program: str) -> None:
        (line,) = re.findall(rf"{program} --[^`\n]+", BACKUP.read_text())
        assert SOMEWHERE in line
        url = self.server.url(self.name).replace("+psycopg", "")
        words = shlex.split(line.replace(SOMEWHERE, url))
        subprocess.run([self.binaries / words[0], *words[1:]], check=True, cwd=self.folder)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Sqlite(tmp_path)
        return
    shared = request.getfixturevalue("postgres_server")
    binaries = Path(shared.command[0]).parent
    server = type(shared)(binaries, durable=True)  # on another one a gateway does not begin
    yield Postgres(server, binaries, tmp_path)
    server.stop()


def test_a_copy_is_for_who_made_it_alone(tmp_path) -> None:
    """It holds what batches asked; `ledger.db` lies in a folder that nobody else reads."""
    (tmp_path / ".breakeven").mkdir()
    sqlite3.connect(tmp_path / ".breakeven" / "ledger.db").execute("CREATE TABLE t (x)")
    blocks = re.findall(r"```sh\n(.*?)```", BACKUP.read_text(), re.DOTALL)
    (sqlite,) = [block for block in blocks if "VACUUM INTO" in block]
    subprocess.run(["sh", "-ec", f"umask 022; {sqlite}"], check=True, cwd=tmp_path)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert all("umask 077" in block for block in blocks)


def test_what_a_copy_is_compared_with_is_older_than_it(make_host, tmp_path, patiently) -> None:
    """Else a whole copy lacks what was sealed since, and books seem to be missing."""
    text = BACKUP.read_text()
    assert text.index("`breakeven ledger seal`") < text.index("```sh")
    host = make_host(workers=1, engines=1)
    host.start()
    host.ask()
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) == host.answered)
    engine = open_readonly(host.ledger)

    def sealed():
        with engine.connect() as connection:
            link, chain = head(connection)
        return (link.number, chain) if link.number else None

    first = patiently(sealed)
    Sqlite(tmp_path).copy(host.state)
    host.ask()
    later = patiently(lambda: sealed() if sealed() != first else None)
    engine.dispose()
    copy = open_readonly(f"sqlite:///{tmp_path}/copy.db")
    with copy.connect() as connection:
        assert entry_is_there(connection, SealRow, *first)
        assert not entry_is_there(connection, SealRow, *later)
    copy.dispose()


def test_after_a_crash_an_older_ledger_gets_what_journals_still_have(
    make_host, database, patiently
) -> None:
    host = make_host(workers=1, engines=1, **database.changes)
    host.start()
    for _ in range(4):
        host.ask()
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) == host.answered)
    database.copy(host.state)
    for _ in range(6):
        host.ask()
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) == host.answered)
    answered = host.answered
    before = {row["attempt_id"]: row["cost_pusd"] for row in host.rows()}
    host.kill_all()
    database.put_back(host.state)
    assert len(host.rows()) == answered - 6
    host.start()  # with the same key, which the copy has
    patiently(lambda: before.keys() <= {row["attempt_id"] for row in host.rows()})
    rows = {row["attempt_id"]: row["cost_pusd"] for row in host.rows()}
    assert {name: rows[name] for name in before} == before
    assert host.terminate() == 0
    engine = open_readonly(host.ledger)
    with engine.connect() as connection:
        assert verify(connection).findings == ()
    engine.dispose()
