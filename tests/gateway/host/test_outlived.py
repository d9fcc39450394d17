"""`breakeven serve` goes on: its file is edited, its watcher leaves, its terminal, a part of it."""

import os
import signal
import sys
import threading
from pathlib import Path

import httpx

ASKED = {
    "model": "own", "stream": True, "max_tokens": 150, "ignore_eos": True, "logprobs": True,
    "messages": [{"role": "user", "content": "go on"}],
}  # fmt: skip

FAILS = """
import sys
from pathlib import Path

if "serve" in sys.orig_argv:  # workers are forks of it
    from gateway.request.silent_engine import SilentEngineDetector

    usual, mark = SilentEngineDetector.check_engines, Path({mark!r})

    def check_engines(self):
        if mark.exists():
            mark.unlink()
            raise OSError(28, "No space left on device")
        usual(self)

    SilentEngineDetector.check_engines = check_engines
"""


# Runs what follows with a terminal of its own, which is open as long as that runs.
TERMINAL = """
import fcntl, os, pty, sys, termios
os.setsid()
ends = pty.openpty()
fcntl.ioctl(ends[1], termios.TIOCSCTTY, 0)
for end in ends:
    os.set_inheritable(end, True)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Reader(threading.Thread):
    """Reads one stream to its end, however that comes."""

    def __init__(self, host) -> None:
        super().__init__(daemon=True)
        self.host, self.read, self.begun = host, b"", threading.Event()
        self.start()

    def run(self) -> None:
        url, headers = (
            f"{self.host.url}/v1/chat/completions",
            {"authorization": f"Bearer {self.host.token}"},
        )
        with httpx.stream(
            "POST", url, json=ASKED, headers=headers, trust_env=False, timeout=30
        ) as answer:
            try:
                for part in answer.iter_raw():
                    self.read += part
                    self.begun.set()
            except httpx.HTTPError:
                return


def killed(host, patiently, module: str) -> None:
    """Kill one process of each kind that reads the configuration; another one takes its place."""
    pids = set(host.pids(module))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    patiently(lambda: len(set(host.pids(module)) - pids) == len(pids), 60)


def answers(host) -> bool:
    try:
        return host.ask().status_code == 200
    except httpx.HTTPError:
        return False


def test_it_goes_on_while_its_file_is_edited_and_a_part_fails_and_ends_with_its_terminal(
    make_host, patiently, tmp_path
) -> None:
    """One host for all three, because its start takes longer than they do."""
    mark = tmp_path / "failing"
    (tmp_path / "sitecustomize.py").write_text(FAILS.format(mark=str(mark)))
    host = make_host(engines=1, server={"port": 0, "workers": 1, "timeouts": {"drain_s": 60}})
    host.environ |= {"PYTHONPATH": f"{tmp_path}:{host.root}"}
    host.within = [sys.executable, "-c", TERMINAL]
    host.start()
    edited(host, patiently)
    failed(host, patiently, mark)
    hung_up(host)


def edited(host, patiently) -> None:
    """Whoever dies meanwhile comes back with what all others go by, and not with half a file."""
    text = host.config.read_text()
    host.config.write_text(text[: len(text) // 2] + "\n  half: [")
    for module in ("gateway.host.telemetry", "gateway.worker"):
        killed(host, patiently, module)
    patiently(lambda: answers(host), 60)
    host.config.write_text(text)


def failed(host, patiently, mark) -> None:
    """Without what runs beside them requests are not timed out: a worker that lost it is replaced.

    Open streams finish.
    """
    before, reader = host.pids("gateway.worker"), Reader(host)
    assert reader.begun.wait(20)
    mark.touch()
    patiently(lambda: set(host.pids("gateway.worker")) - set(before), 60)
    reader.join(20)
    assert reader.read.endswith(b"data: [DONE]\n\n")
    patiently(lambda: answers(host), 60)
    assert "No space left on device" in (host.state / "logs" / "worker-0.log").read_text()


def hung_up(host) -> None:
    """Its terminal is closed, which a shell and the kernel tell: open streams finish."""
    reader = Reader(host)
    assert reader.begun.wait(20)
    for _ in range(3):
        host.process.send_signal(signal.SIGHUP)
    assert host.process.wait(60) == 0
    reader.join(20)
    assert host.pids() == []
    assert reader.read.endswith(b"data: [DONE]\n\n")
    rows = [row for row in host.rows() if row["output_tokens"] == 150]
    assert [(row["status"], row["basis"]) for row in rows] == [("finished", "reported")] * 2


def test_who_watched_it_leaves_and_it_goes_on(make_host, patiently) -> None:
    """`breakeven serve | head -1` ended at the next line that it would have said, with status 1.

    And under `nohup` a terminal that is closed is nothing to it.
    """
    host = make_host(engines=1, server={"port": 0, "workers": 1, "timeouts": {"drain_s": 1}})
    host.within = ["nohup", "sh", "-c", 'exec "$@" | sed -u /v1$/q', "sh"]
    host.start()
    host._drain.join(20)
    killed(host, patiently, "gateway.worker")
    patiently(lambda: answers(host), 60)
    (parent,) = set(host.pids("serve")) - {host.process.pid}  # without its shell
    os.kill(parent, signal.SIGHUP)
    killed(host, patiently, "gateway.worker")
    assert (Path("/proc") / str(parent)).exists()
    patiently(lambda: answers(host), 60)
