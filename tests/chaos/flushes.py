"""What `scene_flush` watches from outside: a journal and a ledger that say what they made durable.

    python flushes.py FOLDER LEDGER-URL GROUPS [broken]

Prints `{"groups": ..., "commits": ...}`: rounds of the journal's flush, and commits of the books.
`broken`: the journal says that it is durable without asking the disk, and SQLite does not wait.
"""

import asyncio
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from sqlalchemy import event, text  # noqa: E402  (the path is set above)

from ledger.database import make_engine, migrate  # noqa: E402  (as above)
from ledger.journals import flusher  # noqa: E402  (as above)
from ledger.journals.journal import JournalWriter  # noqa: E402  (as above)
from ledger.journals.records import AttemptSettled, TokenCounts  # noqa: E402  (as above)

AT_ONCE = 8


class IdleFlusher:
    """A flusher that flushes nothing."""

    def start_flush(self, _files, loop, done) -> None:
        loop.call_soon(done, None)

    def close(self) -> None:
        return


class FlushCounts:
    def __init__(self, inner) -> None:
        self.inner, self.rounds = inner, 0

    def start_flush(self, files, loop, done) -> None:
        self.rounds += 1
        self.inner.start_flush(files, loop, done)

    def close(self) -> None:
        self.inner.close()


async def journal(folder: Path, groups: int, *, broken: bool) -> int:
    counted = FlushCounts(IdleFlusher() if broken else flusher.best())
    writer = JournalWriter(folder, "w0", flusher=counted)
    for group in range(groups):
        records = [
            AttemptSettled(
                f"r{group}-{place}.1", 0, "finished", 200, TokenCounts(), "reported", 1, 1, 1
            )
            for place in range(AT_ONCE)
        ]
        await asyncio.gather(*(writer.append_durable(record) for record in records))
    rounds = counted.rounds
    writer.close()
    return rounds


def books(url: str, groups: int, *, broken: bool) -> int:
    engine = make_engine(url, keep_open=True)

    @event.listens_for(engine, "connect")
    def unsafe(connection, _record) -> None:
        if broken:
            off = "PRAGMA synchronous=OFF" if url.startswith("sqlite") else None
            connection.execute(off or "SET synchronous_commit TO off")
            if off is None:
                connection.commit()

    for number in range(groups):
        with engine.begin() as connection:
            connection.execute(
                text("INSERT INTO meta (name, value) VALUES (:name, :value)"),
                {"name": f"flush-{number}", "value": number},
            )
    engine.dispose()
    return groups


def main(folder: str, url: str, groups: str, *more: str) -> None:
    broken = "broken" in more
    if "prepare" in more:
        migrate(url)
        return
    rounds = asyncio.run(journal(Path(folder) / "journal", int(groups), broken=broken))
    commits = books(url, int(groups), broken=broken)
    print(json.dumps({"groups": rounds, "commits": commits}))


if __name__ == "__main__":
    main(*sys.argv[1:])
