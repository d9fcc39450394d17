"""A user without a name, as a container has: what it does is written down by its number."""

import getpass
import os
from pathlib import Path

import pytest

from deploy import warmstart
from gateway.control.os_user import os_user

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")
ROOT = Path(__file__).resolve().parents[3]
NOBODYS = 64_123  # a uid of which no passwd file knows


def test_a_user_has_a_name(monkeypatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert os_user() == "ada"


def test_one_without_a_name_has_a_number(monkeypatch) -> None:
    """The control is what the standard library says of the same user."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: NOBODYS)
    with pytest.raises((KeyError, OSError)):
        getpass.getuser()
    assert os_user() == f"uid:{NOBODYS}"


def test_a_key_is_made_by_such_a_user(tmp_path) -> None:
    (tmp_path / "breakeven.yaml").write_text(f"state_dir: {tmp_path}/state\n")
    program = f"import os; os.getuid = lambda: {NOBODYS}; from gateway.cli.app import app; app()"
    done = warmstart.programs().run(
        ["keys", "create", "--name", "x", "--config", tmp_path / "breakeven.yaml"],
        environ={"PATH": os.environ["PATH"], "HOME": "/"}, folder=tmp_path, program=program,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gw_")
