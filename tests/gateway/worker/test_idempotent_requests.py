"""A worker's `Idempotency-Key`s: with replays where they are switched on."""

from types import SimpleNamespace

import pytest

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.errors import ConfigError
from gateway.worker.idempotent_requests import open_submissions


def test_replays_need_a_secret(tmp_path) -> None:
    runtime = SimpleNamespace(ledger_url=f"sqlite:///{tmp_path / 'l.db'}", state_dir=str(tmp_path))
    replay = {"enabled": True, "key_env": "SECRET"}
    plain, replaying = (
        Settings.model_validate({"server": {"idempotency": {"replay": given}}})
        for given in ({}, replay)
    )
    assert open_submissions(plain, runtime, Clock(), {})._kept is None
    assert open_submissions(replaying, runtime, Clock(), {"SECRET": "x" * 40})._kept is not None
    with pytest.raises(ConfigError):
        open_submissions(replaying, runtime, Clock(), {})
