"""A host's engines by its shared memory; where none runs, that is said."""

import errno
import os

import pytest

from gateway.config.settings import parse
from gateway.control.admin.enginehost import EngineHost, running_here, runtime_of
from gateway.control.override_changes import OverrideError
from gateway.runtime import Runtime


def test_engines_are_found_by_their_own_name_and_by_their_pools(stack) -> None:
    host = EngineHost(stack.settings, stack.runtime, stack.board)
    assert [item.seat.name for item in host.every()] == ["pool:main/0", "pool:embed/0"]
    assert [item.row for item in host.engines_named("pool:embed")] == [1]
    assert host.engines_named("pool:embed/0")[0].word == "healthy"
    with pytest.raises(
        OverrideError, match="there is no engine `main`; the engines are pool:main/0"
    ):
        host.engines_named("main")


def test_an_order_is_a_file_named_by_its_row(stack) -> None:
    orders = stack.runtime.run_dir / "restart"
    orders.mkdir(exist_ok=True)
    EngineHost(stack.settings, stack.runtime, stack.board).order(1)
    assert [path.name for path in orders.iterdir()] == ["1"]
    EngineHost(stack.settings, stack.runtime, stack.board).order(0, "rest")
    assert sorted(path.name for path in orders.iterdir()) == ["0.rest", "1"]


def test_where_nothing_runs_it_is_said(tmp_path) -> None:
    settings = parse(f"state_dir: {tmp_path}", name="t")
    with pytest.raises(OverrideError, match="no gateway runs on"), running_here(settings):
        pass
    with pytest.raises(OverrideError, match="start `breakeven serve`, which makes it"):
        runtime_of(settings)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "runtime.json").write_text("{}")
    with pytest.raises(OverrideError, match=r"runtime\.json"):
        runtime_of(settings)


def test_what_belongs_to_another_user_is_said_and_no_traceback(tmp_path, monkeypatch) -> None:
    """`engine status` and `engine logs` by a person who is not the user of `serve`."""

    def refused(path: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("gateway.control.admin.enginehost.is_held", refused)
    monkeypatch.setattr(Runtime, "load", refused)
    settings = parse(f"state_dir: {tmp_path}", name="t")
    words = "Permission denied: it is for the user whom `breakeven serve` runs as"
    with pytest.raises(OverrideError, match=words), running_here(settings):
        pass
    with pytest.raises(OverrideError, match=words):
        runtime_of(settings)
