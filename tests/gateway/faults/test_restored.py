"""A copy of the ledger made while it works, and going back to it, as deploy/BACKUP.md says."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from ledger.database import open_readonly
from ledger.verify.checks import verify

BACKUP = Path(__file__).resolve().parents[3] / "deploy" / "BACKUP.md"


def copied(ledger: Path, copy: Path) -> None:
    """By the page's own command."""
    (line,) = [one for one in BACKUP.read_text().splitlines() if one.startswith("python3 -c")]
    _, *words, source, target = shlex.split(line)
    assert (source, target) == (".breakeven/ledger.db", "copy.db")
    subprocess.run([sys.executable, *words, ledger, copy], check=True)


def test_after_a_crash_an_older_ledger_gets_what_journals_still_have(
    make_host, tmp_path, patiently
) -> None:
    host, copy = make_host(), tmp_path / "copy.db"
    host.start()
    for _ in range(4):
        host.ask()
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) == host.answered)
    copied(host.state / "ledger.db", copy)
    for _ in range(6):
        host.ask()
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) == host.answered)
    answered = host.answered
    before = {row["attempt_id"]: row["cost_pusd"] for row in host.rows()}
    host.kill_all()
    for end in ("", "-wal", "-shm"):
        (host.state / f"ledger.db{end}").unlink(missing_ok=True)
    shutil.copy(copy, host.state / "ledger.db")
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
