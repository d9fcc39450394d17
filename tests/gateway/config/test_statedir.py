"""A state directory that cannot be used, or is in use, is one line that names it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy import warmstart
from gateway.config.settings import Settings
from gateway.config.statedir import hold
from gateway.errors import ConfigError

# Root writes anywhere; without these two capabilities (DAC_OVERRIDE, DAC_READ_SEARCH) the modes
# count for it, too.
LIKE_ANYBODY = """
import ctypes
libc, head, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(head, sets) == 0
for index in range(3):
    sets[index] &= ~0b110
assert libc.capset(head, sets) == 0
"""
# Not one byte can be written to any file.
FULL_DISK = """
import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""
SERVE, LIST, REPORT = ("serve",), ("keys", "list"), ("ledger", "report")
CREATE = ("keys", "create", "--name", "x")
CONFIG = """
state_dir: {state}
server: {{port: 0}}
models: {{m: {{targets: [standin/m]}}}}
providers: {{standin: {{start: true, simulated: true, prices_as: openai/gpt-4o-mini}}}}
"""


def answered(tmp_path: Path, words: tuple[str, ...], prepare: str) -> Any:
    config = tmp_path.parent / f"{tmp_path.name}.yaml"
    config.write_text(CONFIG.format(state=tmp_path / "state"))
    environ = {**os.environ, "BREAKEVEN_PRELOAD": "0"}  # it is refused before it has children
    return warmstart.programs().run(
        [*words, "--config", config], program=prepare + warmstart.BREAKEVEN, environ=environ
    )


def refused(tmp_path: Path, words: tuple[str, ...], prepare: str) -> str:
    answer = answered(tmp_path, words, prepare)
    assert answer.returncode == 1, answer
    assert "Traceback" not in answer.stderr
    said = answer.stderr.splitlines()[-1]
    assert "state_dir: " in said
    return said


@pytest.mark.parametrize("words", [SERVE, LIST, REPORT])
def test_a_file_in_its_place(tmp_path, words):
    (tmp_path / "state").write_text("")
    said = refused(tmp_path, words, "")
    assert str(tmp_path / "state") in said
    assert "is a file" in said


@pytest.mark.parametrize(
    ("words", "mode"), [(SERVE, 0o500), (LIST, 0o000), (CREATE, 0o500), (REPORT, 0o000)]
)
def test_a_directory_that_nobody_may_write(tmp_path, words, mode):
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(mode)
    said = refused(tmp_path, words, LIKE_ANYBODY)
    (tmp_path / "state").chmod(0o700)
    assert f"{tmp_path / 'state'}" in said
    causes = ("ermission denied", "unable to open database file", "cannot be written")
    assert any(cause in said for cause in causes)


@pytest.mark.parametrize("closed", ["state", "state/journal", "."])
def test_check_says_so_before_a_start(tmp_path, closed):
    """Found in the directory, in what is in it, and above one that is not made yet."""
    if closed != ".":
        (tmp_path / "state" / "journal").mkdir(parents=True)
    place = tmp_path / closed
    place.chmod(0o500)
    said = refused(tmp_path, ("check",), LIKE_ANYBODY)
    assert f"`{place}` cannot be written: name a directory of yours" in said
    place.chmod(0o700)
    answer = answered(tmp_path, ("check",), LIKE_ANYBODY)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize("words", [SERVE, CREATE])
def test_a_full_disk(tmp_path, words):
    said = refused(tmp_path, words, FULL_DISK)
    assert f"{tmp_path / 'state'}" in said


def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=str(tmp_path / "state"))


def test_one_at_a_time_and_the_holder_is_named(tmp_path):
    held = hold(settings(tmp_path))
    with pytest.raises(ConfigError) as caught:
        hold(settings(tmp_path))
    place = tmp_path / "state"
    assert str(caught.value) == (
        f"state_dir: {place} is in use by another `breakeven` (process "
        f"{os.getpid()}): stop it first"
    )
    held.release()
    held.release()
    hold(settings(tmp_path)).release()


def test_a_killed_holder_holds_nothing_but_a_living_one_does(tmp_path):
    code = (
        "import sys; from gateway.config.settings import Settings\n"
        "from gateway.config.statedir import hold\n"
        "held = hold(Settings(state_dir=sys.argv[1]))\n"
        "import subprocess; below = subprocess.Popen(['sleep', '600'])\n"
        "print('held', flush=True); below.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "state")],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(ConfigError, match=f"process {process.pid}"):
        hold(settings(tmp_path))
    process.kill()  # the child that it started lives on, and has no part in the lock
    process.wait()
    hold(settings(tmp_path)).release()
    os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()


def test_only_the_owner_reads_the_state(make_host) -> None:
    """Also what an earlier start left open to everybody."""
    host = make_host()
    (host.state / "logs").mkdir(mode=0o755)
    (host.state / "logs" / "old.log").touch(mode=0o644)
    (host.state / "ledger.db").touch(mode=0o644)
    host.state.chmod(0o755)
    host.start()
    assert host.state.stat().st_mode & 0o777 == 0o700
    paths = [path for path in host.state.rglob("*") if path != host.config]
    assert {"ledger.db", "old.log", "telemetry.log"} <= {path.name for path in paths}
    assert [str(path) for path in paths if path.lstat().st_mode & 0o077] == []


def test_what_somebody_else_owns_keeps_its_modes(tmp_path: Path, monkeypatch) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o755)  # whatever the umask
    settings = Settings(state_dir=str(state))
    monkeypatch.setattr(os, "getuid", lambda: state.stat().st_uid + 1)
    before = os.umask(0o022)
    hold(settings).release()
    os.umask(before)
    assert state.stat().st_mode & 0o777 == 0o755


def test_a_ledger_of_another_version_says_what_brings_it_up(tmp_path: Path) -> None:
    """Empty, it is one of before the first."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "ledger.db").touch()
    said = refused(tmp_path, REPORT, "")
    assert "no such table" in said
    assert "another version made it: `breakeven serve` brings it up" in said


def test_journals_of_a_later_version_refuse_the_start_and_say_how_to_drain(tmp_path: Path) -> None:
    home = tmp_path / "state" / "journal" / "v3" / "worker-0-a"
    home.mkdir(parents=True)
    said = refused(tmp_path, SERVE, "")
    assert "journals of a later version" in said
    assert "`breakeven ledger drain` of that version" in said
    home.rmdir()
    hold(Settings(state_dir=str(tmp_path / "state"))).release()
