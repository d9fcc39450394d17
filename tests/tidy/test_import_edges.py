"""What a process does not need it does not import: each of these costs its start milliseconds."""

import subprocess
import sys
from pathlib import Path

import pytest
from findings import assert_none

from gateway.host.shared_work import MODULES

MAPPED = ("sqlalchemy.orm", "alembic")  # no process maps objects, and only who migrates migrates
CLIENTS = ("httpx", "httpcore", "h2")
SERVER = ("fastapi", "starlette", "uvicorn")


def imported(root: Path, modules: str, asked: set[str]) -> list[str]:
    """Which of these a new process has once it has imported the modules."""
    words = f"import sys, {modules}\nprint(*sorted({asked!r} & sys.modules.keys()))"
    command = [sys.executable, "-c", words]
    told = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return told.stdout.split()


@pytest.mark.parametrize(
    ("modules", "never"),
    [
        ("gateway.cli.app", ("pydantic", "sqlalchemy", "msgspec", "asyncio", *CLIENTS, *SERVER)),
        ("gateway.cli.main", ("typer", "backends", "importlib.metadata")),  # once more after that
        (
            "gateway.config.settings",
            ("sqlalchemy", "ledger.orm", "asyncio", "rich", *CLIENTS, *SERVER),
        ),
        (
            "gateway.cli.keys",
            (
                *MAPPED,
                *CLIENTS,
                *SERVER,
                "gateway.kinds",
                "gateway.request",
                "ledger.orm.tables",
                "sqlalchemy.dialects.postgresql",
                "rich.progress",
            ),
        ),
        (
            "ledger.writer",
            (*MAPPED, *CLIENTS, *SERVER, "pydantic", "rich", "yaml", "gateway", "backends"),
        ),
        ("gateway.host.log_wrapper", ("sqlalchemy", "pydantic", *CLIENTS, *SERVER)),
        # What a host's processes import once, for all of them, and the command that starts it.
        (
            f"{', '.join(MODULES)}, gateway.cli.serve",
            (*MAPPED, "litellm", "zmq", "opentelemetry.sdk", "streamlit"),
        ),
        ("gateway.batches.runner", (*MAPPED, "litellm")),
        ("dashboard.data.reads", (*MAPPED, "pydantic", "gateway")),
    ],
)
def test_nothing_is_imported_that_is_not_needed(
    root: Path, modules: str, never: tuple[str, ...]
) -> None:
    assert_none(imported(root, modules, set(never)))


def test_a_worker_has_its_usual_client_before_it_serves_and_no_more(root: Path) -> None:
    """The table of providers imports no client: the first request would wait for it."""
    asked = {"backends.openai", *MAPPED, "httpx", "rich", "pygments", "typer"}
    assert imported(root, "gateway.worker.__main__", asked) == ["backends.openai"]
