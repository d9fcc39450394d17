"""An upload that does not come to its end leaves nothing behind, however it ends."""

import asyncio
from dataclasses import replace

import pytest
from starlette.requests import ClientDisconnect

from gateway.batches.batch_database import BatchDatabase
from gateway.batches.uploads import Upload, UploadIdempotency, UploadLimits
from gateway.errors import RequestError
from ledger.batches.files import FileRecord
from ledger.database import make_engine

BEGINS = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a\x01b"\r\n\r\n'
ENDS = b'\r\n--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
RECORD = FileRecord("file-1", "search", "k", "batch", "", created_us=5, expires_us=10**18)


@pytest.fixture
async def stored(ledger_url):
    batch_database = BatchDatabase(make_engine(ledger_url))
    yield batch_database
    await batch_database.aclose()


def upload(
    stored: BatchDatabase,
    *parts,
    team_limit: int = 10**9,
    patience_s: float = 5.0,
    once=None,
    by=RECORD,
):
    async def body():
        for part in parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, float):
                await asyncio.sleep(part)
            else:
                raise part

    return Upload(stored, by, UploadLimits(10**7, team_limit, patience_s), once).receive(
        b"b", body()
    )


def left(stored: BatchDatabase) -> list:
    return [stored.files.find("file-1", "search"), stored.files.chunk("file-1", 0)]


async def test_a_whole_one_is_there_in_chunks(stored) -> None:
    record = await upload(stored, BEGINS, b"x" * 3_000_000, b"y", ENDS)
    assert (record.bytes, record.filename, record.purpose) == (3_000_001, "ab", "batch")
    assert stored.files.find("file-1", "search") == record
    assert b"".join(stored.files.chunks("file-1")) == b"x" * 3_000_000 + b"y"
    assert len(list(stored.files.chunks("file-1"))) == 3


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ([], "bad_request"),
        ([ClientDisconnect()], "bad_request"),
        ([1.0], "slow_client"),
        ([b"x" * 11_000_000], "too_large"),
        ([BEGINS.replace(b"--b", b"\r\n--b"), ENDS], "bad_request"),
        ([b"\r\n--bad"], "bad_request"),
    ],
)
async def test_a_cut_one_is_gone(stored, end, kind) -> None:
    with pytest.raises(RequestError) as raised:
        await upload(stored, BEGINS, b"x" * 2_000_000, *end, patience_s=0.3)
    assert raised.value.kind == kind
    assert left(stored) == [None, None]


async def test_a_team_without_room_is_told_while_it_sends(stored) -> None:
    sending = upload(stored, BEGINS, b"x" * 3_000_000, ENDS, team_limit=2 * 1024 * 1024)
    with pytest.raises(RequestError, match="delete some files") as raised:
        await sending
    assert (raised.value.kind, raised.value.param) == ("too_large", "file")
    assert left(stored) == [None, None]


@pytest.mark.parametrize("grace_s", [0.2, 30.0])
async def test_a_trickle_is_ended_though_it_never_stops(stored, monkeypatch, grace_s) -> None:
    """With the longer grace, the control, it comes to its end."""
    monkeypatch.setattr("gateway.batches.body_pace.GRACE_S", grace_s)
    sending = upload(stored, BEGINS, *[0.05, b"x"] * 10, ENDS)
    if grace_s == 30.0:
        assert (await sending).bytes == 10
        return
    with pytest.raises(RequestError) as raised:
        await sending
    assert raised.value.kind == "slow_client"
    assert left(stored) == [None, None]


async def begun(stored: BatchDatabase) -> None:
    async with asyncio.timeout(5):
        while stored.files.chunk("file-1", 0) is None:  # noqa: ASYNC110 - a row, and no event
            await asyncio.sleep(0.01)


async def test_a_cancelled_one_is_gone(stored) -> None:
    task = asyncio.create_task(upload(stored, BEGINS, b"x" * 2_000_000, 30.0))
    await begun(stored)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left(stored) == [None, None]


async def test_while_it_comes_nobody_sees_it(stored) -> None:
    task = asyncio.create_task(upload(stored, BEGINS, b"x" * 2_000_000, 0.5, ENDS))
    await begun(stored)
    assert stored.files.find("file-1", "search") is None
    await task
    assert stored.files.find("file-1", "search") is not None


async def test_two_at_once_with_one_key_are_one_file(stored) -> None:
    """Neither knew of the other when it came: who ends first is the file, nothing of two stays."""
    second = replace(RECORD, id="file-2")
    once = UploadIdempotency("once", 10**18, None)
    late = asyncio.create_task(upload(stored, BEGINS, b"x" * 2_000_000, 0.3, ENDS, once=once))
    await begun(stored)
    assert (
        await upload(stored, BEGINS, b"x" * 2_000_000, ENDS, once=once, by=second)
    ).id == second.id
    assert (await late).id == second.id
    assert left(stored) == [None, None]
    assert len(list(stored.files.chunks(second.id))) == 2


async def test_a_key_of_a_file_that_was_cut_is_free(stored) -> None:
    once = UploadIdempotency("once", 10**18, None)
    with pytest.raises(RequestError, match="The client disconnected before its file was complete"):
        await upload(stored, BEGINS, b"x", ClientDisconnect(), once=once)
    assert stored.find_claim("k", "once", now_us=6) is None
    assert (await upload(stored, BEGINS, b"y", ENDS, once=once)).id == RECORD.id
    assert stored.find_claim("k", "once", now_us=6).request_id == RECORD.id
    assert stored.find_claim("k", "once", now_us=10**18) is None


async def test_a_file_that_was_swept_meanwhile_takes_no_key(stored) -> None:
    once = UploadIdempotency("once", 10**18, None)
    task = asyncio.create_task(upload(stored, BEGINS, b"x" * 2_000_000, 1.0, ENDS, once=once))
    await begun(stored)
    stored.files.drop(RECORD.id)
    with pytest.raises(RequestError, match="longer to arrive"):
        await task
    assert stored.find_claim("k", "once", now_us=6) is None
