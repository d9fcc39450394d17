"""A port that is named before it is used stays free of others' connections."""

import socket

import pytest

from deploy import quietports
from deploy.quietports import find_quiet_port


def test_they_are_free_and_below_those_that_the_system_gives() -> None:
    with socket.socket() as any_one:
        any_one.bind(("127.0.0.1", 0))
        given = any_one.getsockname()[1]
    port = find_quiet_port(3)
    assert quietports.LOWEST <= port < given
    with socket.socket() as last:
        last.bind(("127.0.0.1", port + 2))


def test_one_that_somebody_has_is_none_of_them(monkeypatch, tmp_path) -> None:
    port = find_quiet_port(2)
    few = tmp_path / "few"
    few.write_text(f"{port + 3} 60999")
    monkeypatch.setattr(quietports, "GIVEN", few)
    monkeypatch.setattr(quietports, "LOWEST", port)
    monkeypatch.setattr(quietports, "LEAST", 0)
    monkeypatch.setattr(quietports, "TRIES", 2)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        assert find_quiet_port(1) == port + 1
    monkeypatch.setattr(quietports, "TRIES", 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port + 1))
        with pytest.raises(OSError, match="no 2 free ports"):
            find_quiet_port(2)


def test_where_the_system_gives_all_of_them_there_are_some(monkeypatch, tmp_path) -> None:
    every = tmp_path / "every"
    every.write_text("1024 65535")
    monkeypatch.setattr(quietports, "GIVEN", every)
    assert quietports.LOWEST <= find_quiet_port() < quietports.LOWEST + quietports.LEAST
