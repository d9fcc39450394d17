"""What a process does not need it does not import: each of these costs its start milliseconds."""

import subprocess
import sys
from pathlib import Path

import pytest
from findings import assert_none

from gateway.host.preload import MODULES

MAPPED = ("sqlalchemy.orm", "alembic")  # no process maps objects, and only who migrates migrates
CLIENTS = ("httpx", "httpcore", "h2")
SERVER = ("fastapi", "starlette", "uvicorn")


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
        ("gateway.worker.__main__", (*MAPPED, "httpx", "rich", "pygments", "typer")),
        ("gateway.batches.runner", (*MAPPED, "litellm")),
        ("dashboard.data.reads", (*MAPPED, "pydantic", "gateway")),
    ],
)
def test_nothing_is_imported_that_is_not_needed(
    root: Path, modules: str, never: tuple[str, ...]
) -> None:
    words = f"import sys, {modules}\nprint(*sorted({set(never)!r} & sys.modules.keys()))"
    told = subprocess.run(
        [sys.executable, "-c", words], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    assert_none(told.split())


def test_a_worker_has_its_usual_client_before_it_serves(root: Path) -> None:
    """The table of providers imports no client: the first request would wait for it."""
    words = "import sys, gateway.worker.__main__\nprint('backends.openai' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", words], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    assert told.strip() == "True"
