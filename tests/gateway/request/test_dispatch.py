"""One request through every ending: hang-ups in five places, fallback, failures, full journals.

After each: the upstream was told, one settled row holds the last usage, no promise and no hold.
"""

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import msgspec
import pytest
from sqlalchemy import text

from backends.errors import IdleTimeout
from backends.openai import OpenAIBackend
from backends.ratelimit import Allowance, RateLimitHeaders
from backends.sending import Transmission
from backends.simulator.quota import Quota
from gateway.fleet.target_stats import TargetStats
from gateway.request import inference_api
from gateway.request.dispatch import Dispatcher
from gateway.request.metering import UsageMeter
from gateway.request.plan import RoutePlanner
from router.explain import unpack

MESSAGES = [{"role": "user", "content": "hello there"}]
HARD = [{"scope": "global", "usd": 100, "period": "day", "hard": True}]
SOON_S = 10.0  # far less than what is asked for takes to its end
# Refused now and by an empty engine as well; `hopeful` lets it wait all the same.
PATIENT = {"name": "patient", "otherwise": "queue", "queue_ms": 20_000, "slo": {"ttft_ms": 1}}
LONG = {"messages": MESSAGES, "stream": True, "max_tokens": 20_000, "ignore_eos": True}


@pytest.fixture(scope="module")
def budgeted(tmp_path_factory, running):
    """A host where every request holds money."""
    with running(tmp_path_factory.mktemp("host"), budgets=HARD) as stack:
        yield stack


def read_until(connection: socket.socket, mark: bytes, count: int = 1) -> bytes:
    read = b""
    while read.count(mark) < count:
        part = connection.recv(65536)
        assert part, f"ended before {mark!r}: {read!r}"
        read += part
    return read


def held(stack) -> list:
    desk = stack.app.hot._dispatcher.admission.desk
    return [piece.held_pusd for piece in desk._slices.values() if piece.held_pusd]


def hang_up(connection: socket.socket, how: str, reset) -> None:
    reset(connection) if how == "RST" else connection.close()


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize(
    ("place", "body", "upstream"),
    [
        ("before the first token", {"model": "late", "messages": MESSAGES, "stream": True}, "late"),
        ("while nothing is streamed", {"model": "late", "messages": MESSAGES}, "late"),
        ("in the middle of an own stream", {"model": "own", **LONG}, "engine"),
        ("in the middle of an api's stream", {"model": "steady", **LONG}, "steady"),
    ],
)
def test_a_hang_up_ends_the_work_and_is_settled_once(
    budgeted, patiently, reset, how, place, body, upstream
) -> None:
    before = len(budgeted.entries(upstream)), budgeted.booked()
    connection = budgeted.raw(body)
    if place.startswith("in the middle"):
        read_until(connection, b'"content"', 5)
        assert upstream != "engine" or min(budgeted.promises()[:2]) > 0
    else:
        patiently(lambda: len(budgeted.rows()) == before[1] + 1)
    hang_up(connection, how, reset)
    # Served to the end it would take half a minute and more: only an abort ends it this soon.
    entry = patiently(lambda: budgeted.entries(upstream)[before[0] :], SOON_S)[0]
    row = patiently(lambda: budgeted.rows("settled_us IS NOT NULL")[before[1] :])[0]
    assert (entry["status"], row["status"], row["http_status"]) == ("aborted", "client_gone", 499)
    assert entry["request_id"] == row["attempt_id"]
    assert len(budgeted.rows()) == before[1] + 1
    if upstream == "engine":
        assert row["basis"] == "continuous"
        assert entry["sent_tokens"] - 200 < row["output_tokens"] <= entry["completion_tokens"]
    else:
        assert row["basis"] == ("estimated" if body.get("stream") else "bound")
        assert row["cost_pusd"] > 0
        assert body.get("stream") or row["cost_pusd"] > row["bound_pusd"] / 2
    assert budgeted.promises() == [0.0] * 4
    assert held(budgeted) == []
    assert budgeted.app.hot.in_flight == 0


WHOLE = {"model": "own", "messages": MESSAGES, "max_tokens": 20_000, "ignore_eos": True}


def unfinished(stack) -> int:
    """Sequences in the engine, asked in its thread: from this one its batch would break."""

    async def look() -> int:
        pacer = stack.servers["engine"].pacer
        pacer.catch_up()
        return pacer.engine.unfinished

    return stack.call(look())


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize(
    ("body", "path", "sequences"),
    [
        (WHOLE, "/v1/chat/completions", 1),
        ({**WHOLE, "n": 4}, "/v1/chat/completions", 4),
        ({**WHOLE, "prompt": ["a", "b"], "messages": None}, "/v1/completions", 2),
        ({**WHOLE, "stream": True}, "/v1/chat/completions", 1),
    ],
)
def test_an_own_engine_stops_when_the_client_leaves(
    budgeted, patiently, reset, how, body, path, sequences
) -> None:
    """An answer in one piece too, of which nothing was sent; to its end it would take minutes."""
    connection = budgeted.raw(body, path)
    patiently(lambda: unfinished(budgeted) == sequences)
    hang_up(connection, how, reset)
    patiently(lambda: unfinished(budgeted) == 0, SOON_S)


def test_an_answer_in_one_piece_that_is_given_up_is_charged_for_engine_time(
    budgeted, patiently
) -> None:
    start_us = time.time_ns() // 1000  # rows of earlier requests may still be on their way
    connection = budgeted.raw(WHOLE)
    patiently(lambda: unfinished(budgeted) == 1)
    connection.close()
    mine = f"settled_us IS NOT NULL AND opened_us >= {start_us}"
    (row,) = patiently(lambda: budgeted.rows(mine))
    assert (row["status"], row["basis"], row["output_tokens"]) == ("client_gone", "estimated", 0)
    assert 0 < row["engine_us"] <= row["duration_us"]
    assert row["cost_pusd"] > 0


def test_an_own_engine_stops_when_the_client_leaves_more_requests_behind(
    budgeted, patiently
) -> None:
    """Those that wait behind the one in work are not begun, and do not hide the hang-up."""
    connection = budgeted.raw(WHOLE)
    patiently(lambda: unfinished(budgeted) == 1)
    connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n" * 3)
    connection.close()
    patiently(lambda: unfinished(budgeted) == 0, SOON_S)
    patiently(lambda: budgeted.app.hot.in_flight == 0)


def test_requests_that_wait_for_the_engines_slots_leave_with_their_clients(
    budgeted, patiently
) -> None:
    """More than the engine runs at once: the rest waits there, and is taken back all the same."""
    most = budgeted.servers["engine"].pacer.engine.shape.max_num_seqs
    clients = [budgeted.raw({**WHOLE, "n": 8, "max_tokens": 2000}) for _ in range(most // 8 + 2)]
    patiently(lambda: unfinished(budgeted) > most)
    for client in clients:
        client.close()
    patiently(lambda: unfinished(budgeted) == 0, SOON_S)
    patiently(lambda: budgeted.app.hot.in_flight == 0)


@pytest.fixture
def hopeful(monkeypatch) -> None:
    """As if an engine without load could keep what is asked: so requests wait for one."""
    monkeypatch.setattr("router.decide._may_be_served", lambda *_: True)


@pytest.mark.usefixtures("hopeful")
def test_a_hang_up_before_dispatch_leaves_no_attempt(run_stack, patiently) -> None:
    """The client goes while its request waits for room."""
    with run_stack(policies=[PATIENT]) as stack:
        connection = stack.raw({"model": "own", "messages": MESSAGES})
        patiently(lambda: stack.app.hot.in_flight == 1)
        connection.close()
        patiently(lambda: stack.app.hot.in_flight == 0)
        assert stack.rows() == []
        assert stack.entries("engine") == []


@pytest.mark.usefixtures("hopeful")
@pytest.mark.parametrize(
    ("model", "members", "status", "code"),
    [
        ("own", {"max_tokens": 10**6}, 400, "context_length_exceeded"),
        ("chat", {"store": True}, 400, "unsupported_parameter"),
    ],
)
def test_what_no_wait_changes_is_refused_at_once(
    run_stack, monkeypatch, model, members, status, code
) -> None:
    looks = []
    plan = RoutePlanner.plan

    def looking(self, *given, **named):
        looks.append(1)
        return plan(self, *given, **named)

    monkeypatch.setattr(RoutePlanner, "plan", looking)
    policy = {**PATIENT, "queue_ms": 1_000}
    with run_stack(policies=[policy], store={"enabled": False}) as stack:
        answer = stack.chat(model, **members)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert len(looks) == 1
        # the control: room comes back, so it is looked for until the wait is over
        assert stack.chat("own").status_code == 429
        assert len(looks) > 2


def test_time_at_a_target_that_failed_is_time_waited(stack, monkeypatch) -> None:
    waited = []
    met = UsageMeter._slo_met

    def judged(self, attempt, *given):
        waited.append((attempt.number, attempt.waited_s, attempt.dispatched_s))
        return met(self, attempt, *given)

    monkeypatch.setattr(UsageMeter, "_slo_met", judged)
    stack.fault("alpha", fault="status", status=500, times=1)
    assert stack.chat("pair", max_tokens=2).status_code == 200
    (first, before_s, first_s), (second, after_s, second_s) = waited
    assert (first, second) == (1, 2)
    assert after_s - before_s == pytest.approx(second_s - first_s)
    assert after_s > before_s >= 0.0
    stack.forgive("alpha")


def test_a_hang_up_between_finish_and_its_usage_keeps_the_row(
    stack, patiently, monkeypatch
) -> None:
    """Just before the end leaves, the disk is slow: the row is written all the same."""
    journal = stack.app.hot._dispatcher.metering._journal
    asked = asyncio.Event()

    async def never() -> None:
        asked.set()
        await asyncio.Event().wait()

    count, behind = stack.booked(), journal._behind
    with monkeypatch.context() as patch:
        patch.setattr(behind or journal, "start_flush" if behind else "flush", never)
        connection = stack.raw({"model": "own", "messages": MESSAGES, "stream": True,
                                "max_tokens": 12})  # fmt: skip
        patiently(asked.is_set)
        assert b"[DONE]" not in connection.recv(1 << 20)
        connection.close()
        patiently(lambda: stack.app.hot.in_flight == 0)
    (row,) = patiently(lambda: stack.rows("settled_us IS NOT NULL")[count:])
    assert (row["status"], row["basis"], row["output_tokens"]) == ("finished", "reported", 12)
    assert stack.promises() == [0.0] * 4


def test_without_the_watcher_a_hang_up_goes_unnoticed(run_stack, patiently, monkeypatch) -> None:
    """The negative control of the hang-up tests."""

    def blind(_scope, _receive, _reply):
        return lambda: None

    monkeypatch.setattr(inference_api, "_watch_disconnect", blind)
    with run_stack() as stack:
        connection = stack.raw({"model": "late", "messages": MESSAGES, "stream": True})
        patiently(stack.rows)
        whole = stack.raw(WHOLE)
        patiently(lambda: unfinished(stack) == 1)
        connection.close()
        whole.close()
        with pytest.raises(AssertionError, match="never came true"):
            patiently(lambda: stack.entries("late") or unfinished(stack) == 0, 3)
        assert stack.app.hot.in_flight == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "status", "cost"),
    [
        ({"fault": "status", "status": 500}, "upstream_error", True),
        ({"fault": "status", "status": 503}, "rejected", False),
        ({"fault": "status", "status": 429, "retry_after_s": 1}, "rejected", False),
        ({"fault": "status", "status": 404}, "rejected", False),
        ({"fault": "cut", "after_tokens": 0}, "upstream_error", True),
    ],
)
def test_before_the_first_byte_the_next_target_answers(stack, fault, status, cost, stream) -> None:
    stack.forgive("alpha")
    stack.fault("alpha", **fault)
    answer = stack.chat("pair", stream=stream, max_tokens=5)
    stack.forgive("alpha")
    assert answer.status_code == 200, answer.text
    if fault == {"fault": "cut", "after_tokens": 0} and stream:
        return  # the simulated provider sends its first token before it breaks
    assert answer.headers["x-breakeven-backend"] == "beta/m"
    first, second = stack.settled(answer, 2)
    assert (first["target"], first["status"], first["attempt_no"]) == ("alpha/m", status, 1)
    assert bool(first["cost_pusd"]) == cost
    assert (second["target"], second["status"], second["attempt_no"]) == ("beta/m", "finished", 2)
    assert second["cost_pusd"] > 0


def test_after_the_first_byte_one_error_event_ends_the_stream(stack, events_of) -> None:
    stack.forgive("alpha")
    stack.fault("alpha", fault="cut", after_tokens=3)
    answer = stack.chat("pair", stream=True, max_tokens=50)
    assert answer.status_code == 200
    events = events_of(answer.content)
    assert [set(event) for event in events if "error" in event] == [{"error"}]
    assert set(events[-1]["error"]) == {"message", "type", "param", "code"}
    assert events[-1]["error"]["code"] == "upstream_error"
    (row,) = stack.settled(answer)
    assert (row["status"], row["basis"]) == ("upstream_error", "estimated")
    assert row["output_tokens"] >= 1
    stack.forgive("alpha")


def test_the_official_client_raises_on_the_error_event(stack) -> None:
    openai = pytest.importorskip("openai", reason="the SDK tests have environments of their own")
    stack.forgive("alpha")
    stack.fault("alpha", fault="cut", after_tokens=3)
    client = openai.OpenAI(base_url=f"{stack.url}/v1", api_key=stack.token, max_retries=0)
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="api", messages=MESSAGES, stream=True))
    client.close()
    stack.forgive("alpha")


def test_when_every_target_fails_the_client_is_told_and_every_try_is_a_row(stack) -> None:
    for name in ("alpha", "beta"):
        stack.forgive(name)
        stack.fault(name, fault="status", status=500)
    answer = stack.chat("pair", max_tokens=5)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_error")
    assert [row["http_status"] for row in stack.settled(answer, 2)] == [500, 500]
    stack.forgive("alpha")


ASKED = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 5},
    "/v1/responses": {"input": "hello there"},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 529, "retry_after_s": 2}, "returned 529 (overloaded). Retry after 2 s."),
        ({"status": 429}, "returned 429 (overloaded). Retry after 1 s."),
        ({"status": 500}, "returned 500 (server error). Retry the request, or name another"),
        ({"status": 401}, "returned 401 (it refused the gateway's own account). A retry cannot"),
        ({"status": 405}, "returned 405 (it has no such path, or moved). A retry cannot"),
    ],
)
def test_the_target_that_failed_is_named_with_what_to_do(stack, path, stream, fault, said) -> None:
    stack.forgive("alpha")
    stack.fault("alpha", fault="status", **fault)
    answer = stack.post(path, {"model": "api", "stream": stream, **ASKED[path]})
    stack.forgive("alpha")
    message = answer.json()["error"]["message"]
    assert message.startswith(f"Upstream `alpha/m` {said}")
    assert answer.headers["x-breakeven-backend"] == "alpha/m"
    if "Retry after" in message:
        assert f"Retry after {answer.headers['retry-after']} s." in message
    assert ("x-should-retry" in answer.headers) is ("A retry cannot help" in message)
    for secret in ("injected", "127.0.0.1", str(stack.ports["alpha"])):
        assert secret not in answer.text


@pytest.mark.parametrize("path", ASKED)
def test_a_stream_that_is_cut_names_its_target_in_every_dialect(stack, path) -> None:
    stack.forgive("alpha")
    stack.fault("alpha", fault="cut", after_tokens=3)
    asked = ASKED[path] | ({"max_tokens": 50} if "messages" in ASKED[path] else {})
    answer = stack.post(path, {"model": "api", "stream": True, **asked})
    stack.forgive("alpha")
    name = answer.headers["x-breakeven-backend"]
    assert f"Upstream `{name}` broke off its answer. Retry the request" in answer.text


def test_of_several_targets_that_failed_each_is_named(stack) -> None:
    for name in ("alpha", "beta"):
        stack.forgive(name)
        stack.fault(name, fault="status", status=500)
    answer = stack.chat("pair", max_tokens=5)
    for name in ("alpha", "beta"):
        stack.forgive(name)
    message = answer.json()["error"]["message"]
    assert message.startswith(f"Upstream `{answer.headers['x-breakeven-backend']}` returned 500")
    assert {"`alpha/m`", "`beta/m`"} == {
        word.strip(".,") for word in message.split() if "/m`" in word
    }


def test_a_silent_target_is_cut_after_its_deadline(run_stack) -> None:
    with run_stack(server={"timeouts": {"idle_s": 0.5}}) as stack:
        stack.fault("alpha", fault="stall", after_tokens=3)
        answer = stack.chat("api", stream=True, max_tokens=50)
        assert b'"code":"upstream_timeout"' in answer.content
        (row,) = stack.settled(answer)
        assert (row["status"], row["http_status"]) == ("timeout", 504)
        assert stack.entries("alpha")[-1]["status"] == "aborted"


@pytest.mark.parametrize("begun", [None, True, False])
async def test_what_is_read_on_and_falls_silent_owes_nothing_if_no_byte_had_left(begun) -> None:
    outcomes = []
    metering = SimpleNamespace(settle_later=lambda _attempt, outcome: outcomes.append(outcome))
    transmission = Transmission()
    transmission.begun = begun
    target = SimpleNamespace(own=False, goes_on=True, name="alpha/m")
    attempt = SimpleNamespace(
        step=SimpleNamespace(frozen=SimpleNamespace(target=target)), relay=None, goes_on=True,
        transmission=transmission, sent=transmission.possible,
    )  # fmt: skip
    reply = SimpleNamespace(ended_by="client_gone", started=False)
    told = await Dispatcher._handle_failure(
        SimpleNamespace(metering=metering), attempt, IdleTimeout("silent"), reply
    )
    (outcome,) = outcomes
    assert told is None
    assert (outcome.status, outcome.http_status) == ("client_gone", 499)
    assert outcome.billable is (begun is not False)


def test_a_target_that_refuses_our_key_never_shows_it(stack) -> None:
    stack.forgive("alpha")
    stack.fault("alpha", fault="status", status=401)
    answer = stack.chat("api", max_tokens=5)
    stack.forgive("alpha")
    assert (answer.status_code, "injected" in answer.text) == (502, False)


def test_a_full_journal_refuses_before_anything_is_sent(run_stack, patiently) -> None:
    small = {"journal_segment_bytes": 65536, "journal_limit_bytes": 1024 * 1024}
    with run_stack(ledger=small) as stack:
        assert stack.chat("api", max_tokens=2).status_code == 200
        stack.call(stack.stop_writer())
        long = stack.raw({"model": "steady", **LONG})
        read_until(long, b'"content"')
        journal = stack.app.hot._dispatcher.metering._journal
        journal._kept[stack.state] = 1024 * 1024  # as if so much lay there unapplied
        journal._kept_bytes += 1024 * 1024
        served = len(stack.entries("alpha"))
        answer = stack.chat("api", max_tokens=2)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"] == "5"
        assert len(stack.entries("alpha")) == served
        missing = stack.chat("own", max_tokens=10**9)
        assert missing.status_code == 400  # the refusal has no room for its note, and stands
        long.close()  # what was open is settled all the same
        patiently(lambda: stack.app.hot.in_flight == 0)
        stack.call(_start(stack))
        (row,) = patiently(lambda: stack.rows("model = 'steady' AND settled_us IS NOT NULL"))
        assert row["status"] == "client_gone"


async def _start(stack) -> None:
    stack.start_writer()


@pytest.mark.parametrize("way", ["kernel", "thread", "calls"])
def test_a_broken_disk_answers_503_and_never_a_finished_answer(run_stack, monkeypatch, way) -> None:
    with run_stack(ledger={"journal_writes": way}) as stack:
        journal = stack.app.hot._dispatcher.metering._journal
        place, name = (journal, "_file") if way == "calls" else (journal._behind.place, "file")
        monkeypatch.setattr(place, name, 2**30)  # every write fails
        answer = stack.chat("api", max_tokens=2)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        monkeypatch.undo()


def test_sticky_sessions_come_back_to_their_target(run_stack) -> None:
    models = {"pair": {"targets": ["alpha/m", "beta/m"], "sticky": "session"}}
    with run_stack(models=models) as stack:
        headers = {**stack.headers(), "x-session-id": "one"}
        body = {"model": "pair", "messages": MESSAGES, "max_tokens": 2}
        stack.fault("alpha", fault="status", status=500)

        def target() -> str:
            url = f"{stack.url}/v1/chat/completions"
            return stack.client.post(url, json=body, headers=headers).headers["x-breakeven-backend"]

        assert target() == "beta/m"  # by failure
        assert target() == "beta/m"  # by stickiness, although dearer
        assert stack.chat("pair", max_tokens=2).headers["x-breakeven-backend"] == "alpha/m"


def overrun(stack, quota: Quota, **members) -> tuple[list[str], int]:
    """Thirty requests in sixes; of tokens, more than the first six that nobody has learned from."""
    stack.forgive("alpha")
    before = len(stack.entries("alpha"))
    alpha = stack.providers["alpha"]
    usual, alpha._quota = alpha._quota, quota
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: stack.chat("pair", **members), range(30)))
    alpha._quota = usual
    stack.forgive("alpha")
    assert {answer.status_code for answer in answers} == {200}
    refused = [entry for entry in stack.entries("alpha")[before:] if entry["http_status"] == 429]
    return [answer.headers["x-breakeven-backend"] for answer in answers], len(refused)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("requests_per_minute", "tokens_per_minute", "words"), [(10, 1_000_000, 3), (10_000, 4000, 200)]
)
def test_a_providers_limit_is_never_overrun(
    stack, patiently, requests_per_minute, tokens_per_minute, words, stream
) -> None:
    quota = Quota(requests_per_minute, tokens_per_minute)
    asked = [{"role": "user", "content": "word " * words}]
    who, refused = overrun(stack, quota, messages=asked, max_tokens=3, stream=stream)
    assert refused == 0
    assert who[0] == "alpha/m"
    assert {"alpha/m", "beta/m"} == set(who), "what has no room goes to the next target"

    def reasons() -> list[str]:
        with stack.reader.connect() as books:
            records = books.execute(text("SELECT decision FROM decisions")).scalars().all()
        return [
            verdict["reason"]
            for record in records
            for verdict in unpack(msgspec.msgpack.decode(record))["candidates"]
        ]

    patiently(lambda: "rate_limit" in reasons())  # the writer collects before it writes


def test_a_limit_that_nobody_listens_to_is_overrun(stack, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(TargetStats, "record_rate_limit", lambda *_: None)
    _, refused = overrun(stack, Quota(10, 1_000_000), max_tokens=3)
    assert refused > 0


def test_who_has_nowhere_else_to_go_is_told_when_to_come_back(stack) -> None:
    stack.forgive("alpha")
    row = stack.runtime.apis.index("alpha/m")
    said = RateLimitHeaders(Allowance(500, 0, 31.0))
    stack.app.hot._dispatcher.experience.record_rate_limit(row, said)
    answer = stack.chat("api", max_tokens=3)
    stack.forgive("alpha")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "no_feasible_target")
    assert answer.headers["retry-after"] in ("30", "31")
    assert "rate_limit" in answer.json()["error"]["message"]
    assert stack.chat("api", max_tokens=3).status_code == 200


@pytest.mark.usefixtures("hopeful")
def test_who_hangs_up_while_waiting_leaves_the_line_and_the_books_alone(
    run_stack, patiently
) -> None:
    with run_stack(policies=[PATIENT], queue={"places": 2}) as stack:
        waiting = [stack.raw({"model": "own", "messages": MESSAGES}) for _ in range(2)]
        shown = lambda: stack.get("/metrics").text  # noqa: E731  (looked at again and again)
        patiently(lambda: "breakeven_queue_length 2.0" in shown())
        third = stack.chat("own")
        assert (third.status_code, third.headers["retry-after"]) == (503, "1")
        assert third.json()["error"]["code"] == "overloaded"
        for connection in waiting:
            connection.close()
        patiently(lambda: 'breakeven_queue_wait_seconds_count{ended="gone"} 2.0' in shown())
        assert "breakeven_queue_length 0.0" in shown()
        assert stack.rows() == []


@pytest.mark.parametrize("by_priority", [True, False])
def test_only_an_engine_that_serves_by_priority_is_told_one(
    run_stack, monkeypatch, by_priority
) -> None:
    sent = []
    opened = OpenAIBackend.open

    async def looking(self, call):
        sent.append(msgspec.json.decode(call.body))
        return await opened(self, call)

    def adjust(found, _ports):
        if by_priority:
            flags = ["--scheduling-policy", "priority"]
            found["pools"]["main"]["engine"]["flags"] = flags

    monkeypatch.setattr(OpenAIBackend, "open", looking)
    policies = [{"name": "first", "match": {"models": ["own"]}, "priority": "high"}]
    with run_stack(policies=policies, adjust=adjust) as stack:
        assert stack.chat("own", max_tokens=1, priority=-9).status_code == 200
        assert stack.chat("api", max_tokens=1).status_code == 200
    own, api = sent
    assert own.get("priority") == (-1 if by_priority else None)
    assert "priority" not in api
