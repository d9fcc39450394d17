"""`breakeven serve` goes on: its file is edited, its watcher leaves, its terminal, a part of it."""

import os
import signal
import subprocess
import threading

import httpx
import pytest

ASKED = {
    "model": "own", "stream": True, "max_tokens": 150, "ignore_eos": True, "logprobs": True,
    "messages": [{"role": "user", "content": "go on"}],
}  # fmt: skip

FAILS = """
from pathlib import Path
from gateway.targets.silence import Silences

usual, mark = Silences.look, Path({mark!r})

def look(self):
    if mark.exists():
        mark.unlink()
        raise OSError(28, "No space left on device")
    usual(self)

Silences.look = look
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


def test_a_file_that_is_edited_is_read_at_the_next_start(make_host, patiently) -> None:
    """Whoever dies meanwhile comes back with what all others go by, and not with half a file."""
    host = make_host(server={"port": 0, "workers": 1, "timeouts": {"drain_s": 1}})
    host.start()
    text = host.config.read_text()
    host.config.write_text(text[: len(text) // 2] + "\n  half: [")
    for module in ("gateway.host.telemetry", "gateway.worker"):
        killed(host, patiently, module)
    patiently(lambda: answers(host), 60)
    host.config.write_text(text)
    assert host.terminate() == 0


def test_who_watched_it_leaves_and_it_goes_on(make_host, patiently) -> None:
    """`breakeven serve | head -1`: at the next line that it would say it ended, with status 1."""
    host = make_host(server={"port": 0, "workers": 1, "timeouts": {"drain_s": 1}})
    host.within = ["sh", "-c", 'exec "$@" | sed -u /v1$/q', "sh"]
    host.start()
    host._drain.join(20)
    killed(host, patiently, "gateway.worker")
    patiently(lambda: answers(host), 60)
    killed(host, patiently, "gateway.worker")
    patiently(lambda: answers(host), 60)


@pytest.mark.parametrize("hangups", [1, 3])
def test_a_closed_terminal_lets_open_streams_finish(make_host, hangups) -> None:
    host = make_host(server={"port": 0, "workers": 1, "timeouts": {"drain_s": 60}})
    host.start()
    reader = Reader(host)
    assert reader.begun.wait(20)
    for _ in range(hangups):
        host.process.send_signal(signal.SIGHUP)
    assert host.process.wait(40) == 0
    reader.join(20)
    assert host.pids() == []
    assert reader.read.endswith(b"data: [DONE]\n\n")
    (row,) = [row for row in host.rows() if row["output_tokens"] == 150]
    assert (row["status"], row["basis"]) == ("finished", "reported")


def test_who_was_told_to_ignore_it_does(make_host) -> None:
    """The control, and what `nohup` asks for."""
    host = make_host(server={"port": 0, "workers": 1, "timeouts": {"drain_s": 1}})
    host.within = ["nohup"]
    host.start()
    host.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        host.process.wait(2)
    assert answers(host)
    assert host.terminate() == 0


def test_a_worker_that_lost_a_part_of_itself_is_replaced(make_host, patiently, tmp_path) -> None:
    """It went on without: nobody was timed out, no price followed. Open streams finish."""
    mark = tmp_path / "failing"
    (tmp_path / "sitecustomize.py").write_text(FAILS.format(mark=str(mark)))
    host = make_host(server={"port": 0, "workers": 1, "timeouts": {"drain_s": 60}})
    host.environ |= {"PYTHONPATH": f"{tmp_path}:{host.root}"}
    host.start()
    before = host.pids("gateway.worker")
    reader = Reader(host)
    assert reader.begun.wait(20)
    mark.touch()
    patiently(lambda: set(host.pids("gateway.worker")) - set(before), 60)
    reader.join(20)
    assert reader.read.endswith(b"data: [DONE]\n\n")
    patiently(lambda: answers(host), 60)
    assert "No space left on device" in (host.state / "logs" / "worker-0.log").read_text()
    assert host.terminate() == 0
