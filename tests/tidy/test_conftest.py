"""The suite's own fixtures: databases are real and fresh, and the world is out of reach."""

import os
import socket
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from deploy import parts, warmstart


def test_each_database_is_empty_and_writable(database_url: str) -> None:
    engine = sqlalchemy.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (x BIGINT)"))
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES (9223372036854775807)"))
        assert connection.execute(sqlalchemy.text("SELECT x FROM t")).scalar() == 2**63 - 1
    engine.dispose()


def test_postgres_databases_are_dropped(postgres_server, postgres_url: str) -> None:
    with psycopg.connect(postgres_server.admin, autocommit=True) as connection:
        names = [row[0] for row in connection.execute("SELECT datname FROM pg_database")]
    assert [name for name in names if name.startswith("test_")] == [postgres_url.rpartition("/")[2]]


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("10.0.0.1", 443)])
def test_the_world_cannot_be_reached(address: tuple[str, int]) -> None:
    with socket.socket() as client, pytest.raises(RuntimeError, match="loopback only"):
        client.connect(address)


def test_names_of_the_world_are_not_resolved() -> None:
    with pytest.raises(RuntimeError, match="loopback only"):
        socket.getaddrinfo("example.org", 443)


def test_loopback_can_be_reached(free_port: int) -> None:
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", free_port))
        server.listen()
        client.connect(("127.0.0.1", free_port))
        assert client.getpeername()[1] == free_port


@pytest.mark.parametrize(
    ("ci", "unavailable", "outcome"),
    [("", "", "1 skipped"), ("true", "", "1 error"), ("true", "vllm", "1 skipped")],
)
def test_a_missing_part_is_a_loud_skip_and_on_ci_a_failure(
    root: Path, tmp_path: Path, ci: str, unavailable: str, outcome: str
) -> None:
    test = tmp_path / "test_needs_engine.py"
    test.write_text("def test_it(engine_python): assert engine_python\n")
    environ = {**os.environ, "BREAKEVEN_ENGINE": str(tmp_path / "nowhere"), "CI": ci}
    environ[parts.UNAVAILABLE] = unavailable
    answer = warmstart.programs().run(
        ["-p", "tests.conftest", "-p", "no:cacheprovider", test],
        folder=root, environ=environ, program="import pytest; pytest.main()",
    )  # fmt: skip
    assert outcome in answer.stdout.splitlines()[-1]
    assert "vllm         SKIPPED: vLLM in its own environment is missing: " in answer.stdout
    assert "breakeven engine install" in answer.stdout
