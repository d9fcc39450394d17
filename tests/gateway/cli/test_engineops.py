"""`breakeven engine status|drain|resume|restart|logs` beside a running host, under load."""

import json
import re
import shutil
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backends.engine.guard import RotatingLog
from gateway.cli import engineops
from gateway.cli.app import app
from gateway.cli.engineops import LogTail
from gateway.control.admin.enginehost import EngineHost
from gateway.fleet.engine_notes import PARENT, EngineStatusNotes
from gateway.host.logfiles import rotate

LONG = {"messages": [{"role": "user", "content": "x"}], "stream": True, "ignore_eos": True}


class Crowd:
    """Clients that ask for streams of so many tokens, one after the other, until `end`."""

    def __init__(self, host, tokens: int = 150, clients: int = 4) -> None:
        self.host, self.tokens, self.whole, self.broken = host, tokens, 0, []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        while not self._over.is_set():
            try:
                answer = self.host.ask(**LONG, max_tokens=self.tokens)
            except Exception as error:  # noqa: BLE001  (whatever breaks is what is looked for)
                self.broken.append(repr(error))
                continue
            if answer.status_code == 200 and answer.text.rstrip().endswith("[DONE]"):
                self.whole += 1
            else:
                self.broken.append(answer.text[-200:])
                self._over.wait(0.1)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def engine(served):
    def run(verb: str, *words: str):
        return CliRunner().invoke(app, ["engine", verb, *words, "--config", str(served.config)])

    return run


def test_engines_are_restarted_one_by_one_and_no_request_fails(served, engine, patiently) -> None:
    before = patiently(lambda: healthy(engine))
    assert [item["engine"] for item in before] == ["pool:main/0", "pool:main/1"]
    crowd = Crowd(served)
    patiently(lambda: crowd.whole >= 4)
    answer = engine("restart", "pool:main", "--timeout", "60s", "--note", "weekly")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout == "pool:main/0 serves again.\npool:main/1 serves again.\n"
    since = crowd.whole
    patiently(lambda: crowd.whole >= since + 4)
    after = healthy(engine)
    assert [later["life"] for later in after] == [item["life"] + 1 for item in before]
    assert [later["override"] for later in after] == [None, None]
    crowd.end()
    assert crowd.broken == []


def test_the_control_of_that_a_restart_that_waits_for_nobody_breaks_what_runs(
    served, engine, patiently, monkeypatch
) -> None:
    patiently(lambda: healthy(engine))
    monkeypatch.setattr(engineops, "_empty", lambda *_: None)
    crowd = Crowd(served, tokens=1500)  # they outlast every look that an engine's restart waits for
    patiently(lambda: all(item["in_flight"] for item in healthy(engine) or [{"in_flight": 0}]))
    assert engine("restart", "pool:main", "--timeout", "60s").exit_code == 0
    crowd.end()
    assert crowd.broken != []


def healthy(engine) -> list[dict]:
    found = json.loads(engine("status", "--json").stdout)
    return found if all(finding["state"] == "healthy" for finding in found) else []


def test_a_drain_waits_for_what_runs_and_holds_until_resumed(served, engine, patiently) -> None:
    patiently(lambda: healthy(engine))
    answers = []
    asking = [
        threading.Thread(target=lambda: answers.append(served.ask(**LONG, max_tokens=400)))
        for _ in range(4)
    ]
    for thread in asking:
        thread.start()
    patiently(lambda: sum(item["in_flight"] for item in healthy(engine)) == 4)
    drained = engine("drain", "pool:main", "--by", "ann")
    assert drained.exit_code == 0, drained.stderr
    for thread in asking:
        thread.join(timeout=5)
    assert [answer.text.rstrip()[-6:] for answer in answers] == ["[DONE]"] * 4
    refused = served.ask()
    assert refused.status_code == 503
    assert "(disabled)" in refused.text
    shown = engine("status").stdout
    assert shown.count("disabled by ann") == 2
    assert engine("resume", "pool:main").exit_code == 0
    patiently(lambda: served.ask().status_code == 200)


def test_an_engine_that_is_drained_stays_so_when_it_is_restarted(served, engine, patiently) -> None:
    before = patiently(lambda: healthy(engine))
    assert engine("drain", "pool:main/1", "--by", "ann").exit_code == 0
    assert engine("restart", "pool:main/1", "--timeout", "60s").exit_code == 0
    after = healthy(engine)
    assert [later["override"] for later in after] == [None, "disabled by ann"]
    assert [later["life"] for later in after] == [before[0]["life"], before[1]["life"] + 1]
    assert engine("resume", "pool:main/1").exit_code == 0


@pytest.fixture
def elsewhere(served):
    """The same without a configuration, by a key that may."""
    env = {"BREAKEVEN_API_KEY": served.key("operator", scopes=("operations:apply",))}

    def run(verb: str, *words: str):
        return CliRunner().invoke(app, ["--gateway", served.url, "engine", verb, *words], env=env)

    return run


def test_an_engine_is_restarted_from_elsewhere_as_it_is_here(
    served, engine, elsewhere, patiently
) -> None:
    before = patiently(lambda: healthy(engine))
    assert elsewhere("status").stdout == engine("status").stdout
    answer = elsewhere("restart", "pool:main/1", "--timeout", "60s")
    assert (answer.exit_code, answer.stdout) == (0, "pool:main/1 serves again.\n"), answer.stderr
    after = healthy(elsewhere)
    assert [later["life"] for later in after] == [before[0]["life"], before[1]["life"] + 1]
    for verb in ("drain", "restart"):
        item, other = (run(verb, "pool:other") for run in (engine, elsewhere))
        assert (item.exit_code, item.stderr) == (other.exit_code, other.stderr)


def test_an_engine_that_no_start_can_bring_back_is_not_waited_for(
    served, engine, patiently, monkeypatch
) -> None:
    """It was, for as long as the timeout lets it: half an hour."""
    patiently(lambda: healthy(engine))
    look = EngineHost.snapshot
    monkeypatch.setattr(EngineHost, "snapshot", lambda *at: look(*at)._replace(word="stopped"))
    words = EngineStatusNotes(served.state / "run", PARENT)
    words.publish("pool:main/1", "this vLLM has no flag --max-model-length")
    answer = engine("restart", "pool:main/1", "--timeout", "60s")
    words.publish()
    assert answer.exit_code == 1
    assert (
        "engine pool:main/1 has failed and is not restarted: this vLLM has no flag --max-mod"
        in answer.stderr
    )
    assert [entry["override"] for entry in json.loads(engine("status", "--json").stdout)] == [
        None
    ] * 2


def test_a_drain_that_takes_too_long_says_what_is_left(served, engine, patiently) -> None:
    patiently(lambda: healthy(engine))
    crowd = Crowd(served, tokens=2500, clients=2)  # for seconds
    patiently(lambda: sum(item["in_flight"] for item in healthy(engine)) >= 1)
    answer = engine("drain", "pool:main", "--timeout", "1s")
    assert answer.exit_code == 1
    said = r"not done in time: pool:main/0, pool:main/1: [12] requests under way"
    assert re.search(said, answer.stderr)
    assert engine("resume", "pool:main").exit_code == 0
    crowd.end()


def test_its_log_is_shown(served, engine) -> None:
    answer = engine("logs", "pool:main", "-n", "3")
    assert answer.exit_code == 0
    assert "==> pool-main-0.log <==" in answer.stdout
    this_engine = engine("logs", "pool:main/1", "-n", "1")
    assert len(this_engine.stdout.splitlines()) <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status",), "no gateway runs on"),
        (("drain", "pool:main"), "no gateway runs on"),
        (("restart", "pool:main"), "no gateway runs on"),
        (("logs", "pool:main"), "breakeven serve`, which makes it"),
    ],
)
def test_without_a_running_host_it_says_so(make_host, words, said) -> None:
    host = make_host()
    answer = CliRunner().invoke(app, ["engine", *words, "--config", str(host.config)])
    assert answer.exit_code == 1
    assert said in answer.stderr


def test_an_unknown_engine_is_named_with_those_there_are(served, engine) -> None:
    for verb in ("drain", "restart"):
        answer = engine(verb, "pool:other")
        assert answer.exit_code == 1
        assert "there is no engine `pool:other`; the engines are pool:main/0, " in answer.stderr
    assert "is not an engine of this gateway" in engine("logs", "pool:other").stderr


def test_its_last_lines_and_then_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\nthr\xc3\xa9")
    with LogTail(path) as tail, path.open("ab", buffering=0) as log:
        assert tail.last(2) == "two\nthr\xe9"
        assert tail.more() == ""
        log.write(b"!\n\xff\n\xc3")
        assert tail.more() == "!\n\ufffd\n"
        log.write(b"\xa9\n")
        assert tail.more() == "\xe9\n", "a letter that was cut in two is one"


def test_an_engines_log_that_began_anew_is_followed(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "log", 8)
    log.write(b"one\n")
    with LogTail(tmp_path / "log") as tail:
        assert tail.last(9) == "one\n"
        log.write(b"two\n")
        log.write(b"three\n")  # in the next file
        log.write(b"4\n")
        assert tail.more() + tail.more() + tail.more() == "two\nthree\n4\n"
    log.close()
    with LogTail(tmp_path / "log") as tail:
        assert tail.last(3) == "two\nthree\n4\n", "that of a crash may be in the file before"


def test_a_log_that_was_copied_and_emptied_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    with LogTail(path) as tail:
        tail.last(1)
        assert rotate(path, 4)
        with path.open("a") as log:
            log.write("3\n")
        assert tail.more() == "3\n"


def test_while_there_is_none_nothing_came(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with pytest.raises(OSError, match="log"):
        LogTail(path)
    path.write_text("one\n")
    with LogTail(path) as tail:
        tail.last(1)
        shutil.move(path, tmp_path / "log.1")
        assert tail.more() == ""
        path.write_text("two\n")
        assert tail.more() == "two\n"


def test_what_came_between_the_last_look_and_the_rotation_is_told(tmp_path, monkeypatch) -> None:
    path, usual = tmp_path / "log", Path.stat
    path.write_text("one\n")

    def rotated(self, **how):
        monkeypatch.setattr(Path, "stat", usual)
        with path.open("a") as log:
            log.write("late\n")
        path.rename(tmp_path / "log.1")
        path.write_text("next\n")
        return usual(self, **how)

    with LogTail(path) as tail:
        tail.last(1)
        monkeypatch.setattr(Path, "stat", rotated)
        assert tail.more() == "late\nnext\n"


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        (12, "12 requests of ours, 1,900 prompt and 576 output tokens"),
        (0, "no request was sent to it"),
    ],
)
def test_what_was_measured_of_an_engine_is_told(requests, said) -> None:
    note = {"source": "measured: x", "at_us": 1_795_000_000_000_000, "requests": requests,
            "prompt_tokens": 1900, "output_tokens": 576, "setting": "idle"}  # fmt: skip
    line = engineops._describe_measurement({"engine": "pool:a/0", "measured": note})
    assert line == f"pool:a/0 since 2026-11-18 11:06:40 UTC: measured: x; {said}"
    assert engineops._describe_measurement({"engine": "pool:a/0", "measured": None}) == ""
