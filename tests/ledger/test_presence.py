"""What cannot be looked at is an error, and what is absent is none."""

import errno
from pathlib import Path

import pytest

from ledger.presence import is_there


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert not is_there(tmp_path / "loop")
    names = ("file", ".", "broken", "nothing", "nothing/below", "file/below")
    assert [is_there(tmp_path / name) for name in names] == [True, True, False, False, False, False]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_what_cannot_be_looked_at_is_an_error(tmp_path: Path, monkeypatch, number: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(OSError, match="refused"):
        is_there(tmp_path)
