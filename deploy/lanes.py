"""Test lanes that run in parallel with pytest-xdist (`pytest -n 2`, as in `make test`).

A file stays in one lane. Files that share something expensive stay in one lane together: the real
engines (started once), the tree (parsed once), LiteLLM (5 s to import), the clients of one gateway
with a dozen providers, the dashboards of one month. Most tests wait more than they compute, so four
lanes fit on two cores. A test marked `quiet` measures, or loads the machine on purpose, and runs
alone: the other lanes finish their current tests and wait. A quiet test also waits for parts that
are being installed. A group that uses such a part begins once the part is installed.
"""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # has no types

from deploy import coming_parts, lane_reports, once
from deploy.compiling import compile_ahead
from deploy.secondlook import SecondLook

TOGETHER = {
    "engines": ("tests/real/",),
    "tree": ("tests/tidy/",),
    "dashboard": ("tests/dashboard/",),
    "clients": ("tests/sdk/",),
    "LiteLLM": (
        "tests/backends/test_litellm", "tests/deploy/test_provider_table.py",
        "tests/gateway/faults/test_adapter.py",
        "tests/gateway/field/", "tests/gateway/request/dialects/test_translated_response.py",
    ),
}  # fmt: skip
# Files that take 30 s or more. They begin early, so that no lane waits for one at the end.
LONGEST = (
    "tests/gateway/demo/test_start.py", "tests/gateway/host/test_serve.py",
    "tests/gateway/faults/", "tests/gateway/cli/test_engineops.py",
    "tests/backends/engine/test_tunerun.py", "tests/adversary/", "tests/chaos/", "tests/security/",
)  # fmt: skip
# Parts that most tests of a group use.
NEEDED = {
    "engines": ("vllm", "guidellm"),
    "dashboard": ("chromium", "axe"),
    "clients": ("openai-2", "openai-3", "openai-node", "coding", "frameworks", "schemathesis"),
}
ALMOST_DONE = 2  # tests left; a lane runs its last test only after it gets another one or the end
WHERE = "lanes"  # key in a lane's input: the folder with the locks


def group_of(nodeid: str) -> str | None:
    """Return the group of files that share a lane, `None` for a file without a group."""
    return next((name for name, files in TOGETHER.items() if nodeid.startswith(files)), None)


def rank(nodeid: str) -> int:
    """Return the sort key of a test: groups first, then long files, then the other files."""
    group = group_of(nodeid)
    if group is not None:
        return list(TOGETHER).index(group)
    return len(TOGETHER) + (not nodeid.startswith(LONGEST))


def lacks_parts(scope: str) -> bool:
    """Return whether a part that the group uses is still being installed."""
    return any(coming_parts.is_coming(name) for name in NEEDED.get(scope, ()))


class Lanes:
    """The plugin of the whole run: assigns one file at a time, in the order of collection."""

    def __init__(self) -> None:
        self._locks = tempfile.TemporaryDirectory(prefix="breakeven-lanes-")
        self._is_compiled = False

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScopeScheduling:
        config.option.loadscopereorder = False
        return ByFile(config, log)

    def pytest_configure_node(self, node: Any) -> None:
        """Compile everything before the first lane begins; pass the lane its folder of locks."""
        if not self._is_compiled:
            compile_ahead(node.config)
            self._is_compiled = True
        node.workerinput[WHERE] = self._locks.name
        lane_reports.understand(node)

    def pytest_unconfigure(self) -> None:
        self._locks.cleanup()


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # of no type, see above
    """A scheduler that assigns one file at a time, and reassigns the work of a lane that died.

    The scheduler of pytest-xdist 3.8 passes the test that killed a lane to the next lane, counts
    finished files as work, and leaves a lane with one test waiting for a second.
    """

    def remove_node(self, node: Any) -> str | None:
        """Return the test that killed the lane, `None` if the lane had finished its work."""
        crashed: str | None = None
        left: dict[str, dict[str, bool]] = {}
        for scope, unit in self.assigned_work.pop(node).items():
            for nodeid in (nodeid for nodeid, completed in unit.items() if not completed):
                if crashed is None:
                    crashed = nodeid
                else:
                    left.setdefault(scope, {})[nodeid] = False
        self.workqueue.update(left)
        if crashed is not None:
            for other in self.nodes:
                self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        """Assign the first file whose parts are installed, or the first file if none is ready."""
        ready = next((scope for scope in self.workqueue if not lacks_parts(scope)), None)
        if ready is not None:
            self.workqueue.move_to_end(ready, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        """Assign files until the lane has more than two tests; shut it down if no file is left."""
        if node.shutting_down or node not in self.registered_collections:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) <= ALMOST_DONE:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()


class Lane:
    """The plugin of one process that runs tests."""

    def __init__(self, folder: Path) -> None:
        self._gate, self._machine = ((folder / name).open("w") for name in ("gate", "machine"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort tests by duration, longest first, so that no lane waits for one at the end."""
        items.sort(key=lambda item: rank(item.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with self.use_machine(alone=item.get_closest_marker("quiet") is not None):
            return (yield)

    @contextmanager
    def use_machine(self, *, alone: bool) -> Iterator[None]:
        """Hold the machine, exclusively if `alone`, otherwise shared with other lanes.

        Every test passes a gate first. A test that runs alone keeps the gate closed while it waits,
        because the other lanes might otherwise never leave the machine free.
        """
        if alone:
            coming_parts.wait_for_all()
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._machine, fcntl.LOCK_UN)

    def pytest_unconfigure(self) -> None:
        self._gate.close()
        self._machine.close()


def register(config: pytest.Config) -> None:
    """Register the plugins of lanes. Does nothing if all tests run in one process."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    if given is not None:
        config.pluginmanager.register(Lane(Path(given[WHERE])))
        lane_reports.tell_less(config)
        once.share_made(Path(given[WHERE]))
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(Lanes())
        config.pluginmanager.register(SecondLook())
