"""One sink for every log: no secret passes it, each line is one, and it names its request."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import threading

import msgspec
import pytest

from backends.secret import Secret
from gateway import logs
from gateway.config.schema_reports import LogsSection

KEY = "canary-0123456789"
SHAPED = "gw_0123456789abcdef_0123456789abcdef"  # as a client's key looks


HELD = (Secret(KEY),)


@pytest.fixture
def logged():
    """What a sink of that form writes of a call."""

    def write(form: str, say, secrets=HELD) -> str:
        sink, out = logs.LogSink("worker-0", LogsSection(format=form), secrets), io.StringIO()
        sink.setStream(out)
        log = logging.Logger("gateway.test")  # noqa: LOG001  (one of its own, with this sink alone)
        log.addHandler(sink)
        say(log)
        return out.getvalue()

    return write


def fails(log: logging.Logger) -> None:
    try:
        raise ValueError(f"sent {KEY} and {SHAPED}\nFORGED: a line")  # noqa: TRY301  (its traceback is looked at)
    except ValueError:
        log.exception("with %s", KEY)


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_passes(logged, form) -> None:
    for say in (fails, lambda log: log.error("key %s, %s", KEY, {"authorization": SHAPED})):
        assert KEY not in logged(form, say)
        assert SHAPED not in logged(form, say)
        assert KEY in logged(form, say, secrets=()), "the control"


def test_secrets_that_are_found_later_are_struck_out_too(logged) -> None:
    def say(log: logging.Logger) -> None:
        log.error("before: %s", KEY)
        log.handlers[0].hide([Secret(KEY)])
        log.error("after: %s", KEY)

    first, second = logged("text", say, secrets=()).splitlines()
    assert KEY in first
    assert second.endswith("after: ***")


def test_json_is_an_object_a_line(logged) -> None:
    (line,) = logged("json", fails).splitlines()
    said = json.loads(line)
    assert set(said) == {"time", "level", "logger", "process", "message", "error"}
    assert said["process"] == "worker-0"
    assert said["time"].endswith("+00:00")
    assert said["error"].startswith("Traceback")


def test_half_a_character_is_written_as_what_every_reader_of_json_takes(logged) -> None:
    """`json.loads` takes it; what collects logs is written in other languages, and does not."""

    def say(log: logging.Logger) -> None:
        log.error("no file named %s", b"caf\xe9".decode("utf-8", "surrogateescape"))

    assert msgspec.json.decode(logged("json", say))["message"] == r"no file named caf\udce9"
    assert r"caf\udce9" in logged("text", say)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028"])
def test_a_text_makes_no_line_of_its_own(logged, end) -> None:
    said = logged("text", lambda log: log.error("model %s", f"x{end}FORGED: y\x1b[2J"))
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said
    assert not any(line.startswith("FORGED") for line in logged("text", fails).splitlines())


async def test_lines_name_the_request_that_they_are_of(logged) -> None:
    def say(log: logging.Logger) -> None:
        log.error("x")

    async def one(name: str) -> str:
        logs.REQUEST.set(name)
        await asyncio.sleep(0)
        return json.loads(logged("json", say))["request_id"]

    assert await asyncio.gather(one("req_1"), one("req_2")) == ["req_1", "req_2"]
    assert "request_id" not in json.loads(logged("json", say))


def test_lines_of_a_running_gateway_name_the_request_that_was_answered(stack, monkeypatch) -> None:
    def defect(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("gateway.request.inference_api.InferenceApi._decode_body", defect)
    monkeypatch.setattr("gateway.request.model_catalog.ModelCatalog.cards", defect)
    sink, out = logs.LogSink("worker-0", LogsSection(format="json")), io.StringIO()
    sink.setStream(out)
    logging.getLogger().addHandler(sink)
    try:
        answers = [stack.chat("own"), stack.get("/v1/models"), stack.chat("own")]
    finally:
        logging.getLogger().removeHandler(sink)
    assert [answer.status_code for answer in answers] == [500] * 3
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    told = [response["request_id"] for response in said if "a defect" in response.get("error", "")]
    assert told == [answer.headers["x-request-id"] for answer in answers]


PRINTING = """
import sys, threading
from backends.secret import Secret
from gateway import logs
from gateway.config.schema_reports import LogsSection
logs.start("x", LogsSection(format="json"), [Secret("{key}")], printed={printed})
print("to people: {key}")
print("a line", "in parts", end="")
print(", and its end", file=sys.stdout)
sys.stderr.write("one\\ntwo\\nbegun")
"""


def test_what_is_printed_passes_it_line_by_line() -> None:
    """The control: without, it stands there as it was printed, the secret with it."""
    done = {
        printed: subprocess.run(
            [sys.executable, "-c", PRINTING.format(key=KEY, printed=printed)],
            capture_output=True, text=True, check=True,
        )
        for printed in (True, False)
    }  # fmt: skip
    said = [json.loads(line) for line in done[True].stderr.splitlines()]
    assert done[True].stdout == ""
    assert [
        (each_line["logger"], each_line["level"], each_line["message"]) for each_line in said
    ] == [
        ("stdout", "info", "to people: ***"),
        ("stdout", "info", "a line in parts, and its end"),
        ("stderr", "warning", "one"),
        ("stderr", "warning", "two"),
        ("stderr", "warning", "begun"),
    ]
    assert KEY in done[False].stdout
    assert done[False].stderr == "one\ntwo\nbegun"


def test_what_the_sink_fails_at_is_said_on_the_real_stream(capsys) -> None:
    real = io.StringIO()
    printed = logs.StreamLogger("stderr", real)
    log, asked = logging.getLogger("stderr"), []

    class FailingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            asked.append(record)
            printed.write("the sink is at fault\n")

    handler = FailingHandler()
    log.addHandler(handler)
    try:
        printed.write("first\n" + "x" * (logs.LONGEST_LINE + 1))
    finally:
        log.removeHandler(handler)
    assert [len(request.getMessage()) for request in asked] == [5, logs.LONGEST_LINE + 1]
    assert real.getvalue() == "the sink is at fault\n" * 2


def test_who_holds_the_sink_and_prints_waits_for_nobody_who_prints() -> None:
    """A log that fails, as on a full disk, says so by printing, while another thread prints."""
    printed = logs.StreamLogger("stderr", io.StringIO())
    log, inside, go = logging.getLogger("stderr"), threading.Event(), threading.Event()

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "logged":
                inside.set()
                go.wait(10)
                printed.write("the sink is at fault\n")

    handler = Slow()
    log.addHandler(handler)
    holds = threading.Thread(target=log.error, args=("logged",), daemon=True)
    prints = threading.Thread(target=printed.write, args=("printed\n",), daemon=True)
    try:
        holds.start()
        assert inside.wait(10)
        prints.start()
        prints.join(0.2)  # it has come to the sink, and waits for it
        go.set()
        holds.join(10)
        prints.join(10)
        assert not holds.is_alive()
        assert not prints.is_alive()
    finally:
        log.removeHandler(handler)


PROGRAM = """
import logging
from backends.secret import Secret
from gateway import logs
from gateway.config.schema_reports import LogsSection
logs.start("x", LogsSection(format="json", level="{level}"), [Secret("{key}")])
logging.getLogger("gateway.x").info("ours")
logging.getLogger("library").info("theirs")
logging.getLogger("library").warning("theirs, and worse")
raise RuntimeError("{key}")
"""


@pytest.mark.parametrize(("level", "ours"), [("debug", ["ours"]), ("warning", [])])
def test_a_process_logs_through_it_to_its_last_word(level, ours) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(level=level, key=KEY)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    said = [json.loads(line) for line in done.stderr.splitlines()]
    wanted = [*ours, "theirs, and worse", "the process ends because of an error"]
    assert [each_line["message"] for each_line in said] == wanted
    assert said[-1]["error"].splitlines()[-1] == "RuntimeError: ***"


def test_no_exception_is_also_said_as_false(logged) -> None:
    """As asyncio does; the line was lost."""
    assert "destroyed" in logged("json", lambda log: log.error("destroyed", exc_info=False))
