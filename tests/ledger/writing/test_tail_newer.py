"""A host of this version finds a journal that a newer one wrote: nothing of it is lost or changed.

A newer version is played by records with a tag and with a member that this one does not know,
written by this version's journal, whole and with right checksums.
"""

import msgspec
import pytest
from sqlalchemy import func, select

from ledger.journals import payloads
from ledger.journals.journal import JournalWriter
from ledger.journals.reader import JournalReader
from ledger.journals.records import AttemptSettled, Record, RequestRefused
from ledger.orm import tables as orm
from ledger.verify.checks import verify
from ledger.writing.repository import LedgerRepository
from ledger.writing.tail import JournalTailer


class LaterRecord(RequestRefused, tag="unheard-of", frozen=True):
    """A record with a tag of a later version."""


class LaterSettled(AttemptSettled, tag="settle", frozen=True):
    """A settle with a member of a later version."""

    added_later: int = 0


def later_settled(record: AttemptSettled) -> LaterSettled:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return LaterSettled(**values, added_later=7)


def tailer(engine, directory) -> JournalTailer:
    return JournalTailer(LedgerRepository(engine, host="h1"), JournalReader(directory), lambda: 77)


def drain(tail) -> None:
    while (step := tail.step()).moved or step.buried:
        pass


@pytest.fixture
async def journal(tmp_path, opened, settled, refused):
    """Two attempts and a refusal that are known, between them what only a newer version knows."""
    later = LaterRecord(*(getattr(refused(8), name) for name in RequestRefused.__struct_fields__))
    writer = JournalWriter(tmp_path, "w0")
    for record in (opened(1), settled(1), opened(2), later_settled(settled(2)), later, refused(9)):
        writer.append(record)
    writer.close()
    return tmp_path


def counts(engine) -> tuple[int, int, int]:
    with engine.connect() as connection:
        settled = select(func.count()).where(orm.AttemptRow.settled_us.is_not(None))
        refused, aside = (
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (orm.RefusalRow, orm.QuarantinedRecordRow)
        )
        return connection.execute(settled).scalar_one(), refused, aside


async def test_the_journal_waits_whole_and_the_host_says_how_to_go_on(engine, journal) -> None:
    tail = tailer(engine, journal)
    drain(tail)
    assert counts(engine) == (1, 0, 0)  # the second is open, and neither lost nor settled
    assert "a newer version wrote it" in tail.stalled()
    assert "ledger drain" in tail.stalled()
    assert "added_later" in tail.stalled()
    assert len(tail.journals()) == 1
    with engine.connect() as connection:
        said = {finding.check for finding in verify(connection).findings}
        assert said == {"costs_rederive"}  # these books have no prices; nothing else is wrong
    again = tailer(engine, journal)  # a start finds the same
    drain(again)
    assert counts(engine) == (1, 0, 0)
    assert "a newer version wrote it" in again.stalled()


async def test_the_version_that_knows_reads_on_and_nothing_lacks(
    engine, journal, monkeypatch
) -> None:
    drain(tailer(engine, journal))
    known = msgspec.msgpack.Decoder(Record | LaterRecord)

    def decode(payload: bytes) -> object:
        said = msgspec.msgpack.decode(payload)
        said.pop("added_later", None)
        return known.decode(msgspec.msgpack.encode(said))

    monkeypatch.setattr("ledger.journals.scan.decode_payload", decode)
    tail = tailer(engine, journal)
    drain(tail)
    assert counts(engine) == (2, 2, 0)
    assert tail.stalled() is None
    assert tail.journals() == []


async def test_the_control_without_it_rows_are_set_aside_and_the_journal_goes(
    engine, journal, monkeypatch
) -> None:
    monkeypatch.setattr(payloads, "_is_newer", lambda *_: False)
    tail = tailer(engine, journal)
    drain(tail)
    assert counts(engine) == (2, 1, 2)  # the second is lost, and two records are set aside
    assert tail.journals() == []
    with engine.connect() as connection:
        assert "nothing_is_quarantined" in {
            finding.check for finding in verify(connection).findings
        }
