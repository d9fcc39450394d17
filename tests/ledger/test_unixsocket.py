"""A socket has a name that Linux takes, however long its folder's is."""

import asyncio
import os
from pathlib import Path

import pytest

from ledger.unixsocket import PATH_BYTES, short_path


@pytest.mark.parametrize("beyond", [0, 1, 60])
async def test_a_socket_in_a_deep_directory_can_be_reached(tmp_path: Path, beyond: int):
    missing = PATH_BYTES + beyond - len(os.fsencode(tmp_path / "d" / "desk.sock"))
    deep = tmp_path / ("d" * (1 + missing))
    deep.mkdir()
    assert len(os.fsencode(deep / "desk.sock")) == PATH_BYTES + beyond
    with short_path(deep / "desk.sock") as path:
        assert (path == str(deep / "desk.sock")) is (beyond == 0)
        server = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    with short_path(deep / "desk.sock") as path:
        reader, writer = await asyncio.open_unix_connection(path)
    assert await reader.read() == b""
    writer.close()
    server.close()
    await server.wait_closed()


async def test_a_path_longer_than_that_is_refused_by_linux(tmp_path: Path):
    """The control: the name as it is."""
    deep = tmp_path / ("d" * PATH_BYTES)
    deep.mkdir()
    with pytest.raises(OSError, match="too long"):
        await asyncio.start_unix_server(lambda _, writer: writer.close(), str(deep / "desk.sock"))
