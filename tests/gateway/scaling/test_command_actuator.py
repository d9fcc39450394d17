"""An operator's program: words without a shell, bounded time and output, no secret by accident."""

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from gateway.config.schema_scale import ActuatorSection
from gateway.scaling.actuator import ActuatorError, ListedInstance
from gateway.scaling.command_actuator import CommandActuator


@pytest.fixture
def program(tmp_path: Path):
    """Return what makes an actuator of a shell script's text."""

    def make(text: str, environ: dict[str, str] | None = None, **section) -> CommandActuator:
        path = tmp_path / "rent.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        values = {"kind": "command", "argv": (str(path),), "timeout_s": 5.0} | section
        return CommandActuator(ActuatorSection.model_validate(values), "chat", environ or {})

    return make


def test_words_go_as_they_are_and_no_shell_reads_them(program, tmp_path):
    actuator = program(f'printf "%s\\n" "$@" >> {tmp_path}/said')
    actuator.start("chat.0.$(touch /tmp/never)", 0)
    actuator.stop("chat.1.x; exit 1", 1)
    assert (tmp_path / "said").read_text().splitlines() == [
        "start", "chat.0.$(touch /tmp/never)", "0", "stop", "chat.1.x; exit 1", "1",
    ]  # fmt: skip


def test_a_list_is_json_and_may_leave_out_what_is_not_known(program):
    actuator = program("""echo '[{"name":"i-1","token":"chat.0.k","place":0},{"name":"i-2"}]'""")
    assert actuator.list() == [ListedInstance("i-1", "chat.0.k", 0), ListedInstance("i-2")]
    leaving = program("""echo '[{"name":"i-1","ends_s":1790000000.5}]'""")
    assert leaving.list() == [ListedInstance("i-1", ends_us=1_790_000_000_500_000)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 3", "list ended with 3; run it by hand"),
        ("echo hello", "printed no list of engines"),
        ("""echo '[{"name":"i","place":-1}]'""", "a place that is not a place"),
        ("""echo '[{"name":"i","ends_s":-5}]'""", "printed no list of engines"),
        ("""echo '[{"name":7}]'""", "printed no list of engines"),
        ("""echo '[{"name":""}]'""", "printed no list of engines"),
        (f"""echo '[{{"name":"{"i" * 201}"}}]'""", "printed no list of engines"),
        (r"""printf '[{"name":"i","token":"a\\u0000b"}]'""", "with control characters"),
        ("sleep 20", "list was not done within 0.3 s"),
        ("yes | head -c 2000000", "printed more than 1048576 bytes"),
    ],
)
def test_what_goes_wrong_is_said_and_bounded(program, text, said):
    began = time.monotonic()
    with pytest.raises(ActuatorError, match=said):
        program(text, timeout_s=0.3 if "sleep" in text else 5.0).list()
    assert time.monotonic() - began < 5


def test_what_a_program_leaves_behind_ends_with_it(program, tmp_path):
    actuator = program(f"sleep 30 & echo $! > {tmp_path}/pid; wait", timeout_s=0.5)
    with pytest.raises(ActuatorError, match="not done within"):
        actuator.start("chat.0.k", 0)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text():
            return
        os.sched_yield()
        time.sleep(0.02)
    raise AssertionError("what the program started runs on")


def test_what_holds_the_output_of_a_program_that_has_ended_is_not_waited_for(program, tmp_path):
    """The program ends only when its child has left the group: else both would end together."""
    child = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 30' &"
    wait = f"while [ ! -s {tmp_path}/pid ]; do sleep 0.01; done"
    program(f"{child}\n{wait}", timeout_s=20.0).start("chat.0.k", 0)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_only_named_variables_are_seen_and_nothing_printed_is_kept(program, tmp_path):
    environ = {"PATH": os.environ["PATH"], "CLOUD": "eu", "BREAKEVEN_LEDGER_URL": "s-1",
               "CLOUD_TOKEN": "s-2"}  # fmt: skip
    actuator = program(f"env > {tmp_path}/env; echo s-3 >&2; exit 1", environ, env=("CLOUD",))
    with pytest.raises(ActuatorError) as caught:
        actuator.start("chat.0.k", 0)
    assert "s-3" not in str(caught.value)
    seen = (tmp_path / "env").read_text()
    assert "CLOUD=eu" in seen
    assert "s-1" not in seen
    assert "s-2" not in seen


def test_a_program_that_is_not_there_is_named(program):
    with pytest.raises(ActuatorError, match="cannot run /no/such: No such file"):
        program("true", argv=("/no/such",)).start("chat.0.k", 0)
