"""Targets that are down, sick or slow: tries stay near requests, and answers stay fast.

Every deadline is a setting of its own, ends its request, and leaves one settled row.
"""

import gc
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest

from gateway.fleet.target_stats import TargetStats
from gateway.request import dispatch, inference_api
from gateway.request.client_response import ClientResponse
from gateway.request.retry_budget import RESERVE, SHARE, RetryBudget
from gateway.table_layout import ApiStatsCell
from ledger import writer

MESSAGES = [{"role": "user", "content": "hello there"}]
SOON_S = 0.4
BOUNDS_S = 2.0  # what a busy machine may add


def tries(faulty, requests: int, model: str = "pair", **members) -> tuple[int, list]:
    """Attempts that were made for so many requests, and the answers."""
    since = faulty.last_row()
    answers = [faulty.stack.chat(model, max_tokens=3, **members) for _ in range(requests)]
    time.sleep(0.5)  # the last rows are on their way
    return len(faulty.stack.rows("seq > :since", since=since)), answers


def down(faulty, **fault) -> None:
    for name in ("alpha", "beta"):
        faulty.stack.fault(name, **{"fault": "status", "status": 500, "times": 500, **fault})


@pytest.fixture
def peaceful(faulty):
    """Nobody remembers a failure, before and after."""
    faulty.peace()
    yield faulty
    faulty.peace()


def test_an_outage_of_everything_is_not_multiplied(peaceful) -> None:
    """One key's failures open no circuit, so only the account of retries holds them down."""
    down(peaceful)
    made, answers = tries(peaceful, 100)
    assert {answer.status_code for answer in answers} == {502}
    assert made <= (1 + SHARE) * 100 + RESERVE


def test_without_the_account_every_request_is_two(peaceful, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(RetryBudget, "allowed", True)
    down(peaceful)
    made, _ = tries(peaceful, 50)
    assert made == 100


def test_while_one_target_answers_nobody_notices_that_another_is_down(peaceful) -> None:
    peaceful.stack.fault("alpha", fault="status", status=500, times=500)
    made, answers = tries(peaceful, 60)
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-breakeven-backend"] for answer in answers} == {"beta/m"}
    assert made == 120  # of one key alone: others would open the circuit


def keys(stack, count: int) -> list[str]:
    return [stack.key(f"outage-{number}").token for number in range(count)]


def test_a_circuit_that_is_open_answers_at_once_and_says_when(peaceful) -> None:
    tokens = keys(peaceful.stack, 6)
    peaceful.stack.fault("alpha", fault="status", status=500, times=500)
    for token in tokens:
        peaceful.stack.chat("api", token, max_tokens=3)
    served = len(peaceful.stack.entries("alpha"))
    start_s = time.monotonic()
    answers = [peaceful.stack.chat("api", max_tokens=3) for _ in range(20)]
    passed_s = time.monotonic() - start_s
    assert {answer.status_code for answer in answers} == {503}
    assert all(1 <= int(answer.headers["retry-after"]) <= 10 for answer in answers)
    assert len(peaceful.stack.entries("alpha")) == served
    assert passed_s / 20 < 0.25


def recovered(faulty, requests: int, *, warm: bool = False) -> int:
    """The most that the provider had at once when so many waited for its circuit to close."""
    stack = faulty.stack
    row = stack.runtime.apis.index("alpha/m")
    experience = stack.app.hot._dispatcher.experience
    for _ in range(5):
        experience.api(row, ttft_s=None, tpot_s=None, ok=False)
    base = stack.board.api_stats_row(0, row)
    stack.board.cells[base + ApiStatsCell.RETRY_AT_S] = 0.0  # its silence is over
    if warm:
        assert stack.chat("api", max_tokens=3).status_code == 200
        assert (
            stack.board.cells[base + ApiStatsCell.ANSWERED_S]
            > stack.board.cells[base + ApiStatsCell.OPENED_S]
        )
        for cell in (ApiStatsCell.OPENED_S, ApiStatsCell.ANSWERED_S):
            stack.board.cells[base + cell] -= 5.0  # so long ago
    most = 0

    def ask(_: int) -> int:
        answer = stack.chat("api", max_tokens=3)
        return answer.status_code

    with ThreadPoolExecutor(requests) as pool:
        asked = [pool.submit(ask, number) for number in range(requests)]
        while not all(request.done() for request in asked):
            most = max(most, int(stack.board.cells[base + ApiStatsCell.REQUESTS_OUT]))
            time.sleep(0.001)
    return most


def test_who_comes_back_is_asked_by_one_at_first(peaceful, rule) -> None:
    peaceful.alpha.rule = rule(bytes_per_s=2000)  # its heads take a while
    assert recovered(peaceful, 30) <= 2


def test_who_answered_for_a_while_is_asked_by_many(peaceful, rule) -> None:
    peaceful.alpha.rule = rule(bytes_per_s=2000)
    assert recovered(peaceful, 30, warm=True) > 5


def test_without_the_slow_start_all_come_at_once(peaceful, rule, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.fleet.target_stats.is_warming", lambda *_: False)
    peaceful.alpha.rule = rule(bytes_per_s=2000)
    assert recovered(peaceful, 30) > 5


def test_an_engine_that_fails_while_its_metrics_look_well_is_left_alone(peaceful, rule) -> None:
    stack = peaceful.stack
    text = b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n{}"
    peaceful.engine.rule = rule(answer=text)
    asked = len(peaceful.engine.seen)
    tokens = keys(stack, 8)
    answers = [stack.chat("chat", token, max_tokens=3) for token in tokens for _ in range(4)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-breakeven-backend"] for answer in answers} == {"alpha/m"}
    # Each key counts once, so the fifth key's failure is the last that it was asked for.
    assert len(peaceful.engine.seen) - asked <= 4 * 5


def test_without_it_every_request_meets_the_sick_engine_first(peaceful, rule, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(TargetStats, "engine", lambda *_, **__: None)
    peaceful.engine.rule = rule(answer=b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n{}")
    asked = len(peaceful.engine.seen)
    for token in keys(peaceful.stack, 8):
        for _ in range(4):
            assert peaceful.stack.chat("chat", token, max_tokens=3).status_code == 200
    assert len(peaceful.engine.seen) - asked == 32


def test_clients_that_give_up_open_no_circuit_and_close_none(peaceful, rule, patiently) -> None:
    """Five stalled clients were once five failures, and one that left a success."""
    stack = peaceful.stack
    row = stack.runtime.apis.index("alpha/m")
    dispatcher = stack.app.hot._dispatcher
    peaceful.alpha.rule = rule(after_bytes=0, ending="hole")
    for _ in range(4):
        dispatcher.experience.api(row, ttft_s=None, tpot_s=None, ok=False)
    clients = [stack.raw({"model": "api", "messages": MESSAGES}) for _ in range(6)]
    patiently(lambda: stack.app.hot.in_flight == 6)
    for client in clients:
        client.close()
    patiently(lambda: stack.app.hot.in_flight == 0)
    dispatcher.experience.api(row, ttft_s=None, tpot_s=None, ok=False)
    assert stack.chat("api", max_tokens=3).status_code == 503, "the fifth failure in a row"


@pytest.fixture(scope="module")
def hasty(faulty_with):
    timeouts = {"connect_s": SOON_S, "head_s": SOON_S, "whole_s": 2 * SOON_S,
                "idle_s": 3 * SOON_S, "total_s": 8 * SOON_S}  # fmt: skip
    return faulty_with(server={"timeouts": timeouts})


@pytest.mark.parametrize(
    ("deadline", "how", "members", "after_s", "error"),
    [
        ("whole", {"after_bytes": 0, "ending": "hole"}, {}, 2 * SOON_S, "head_timeout"),
        ("head", {"after_bytes": 0, "ending": "hole"}, {"stream": True}, SOON_S, "head_timeout"),
        ("idle", {"before": b'"[sim', "ending": "hole"}, {"stream": True}, 3 * SOON_S,
         "idle_timeout"),
        ("total", {}, {"stream": True}, 8 * SOON_S, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["own", "api"])
def test_each_deadline_ends_its_request_and_leaves_one_row(
    hasty, rule, answers, model, deadline, how, members, after_s, error
) -> None:
    if deadline == "total":
        word = f"data: {{{answers.CHOICE % 'x'}}}\n\n".encode()
        head = answers.HEAD + b"connection: close\r\n\r\n"
        how = {"answer": head, "endless": word, "pause_s": 0.05}
    if model == "own" and deadline == "idle":
        how = {"before": b'"finish_reason":null', "ending": "hole"}
    for _ in range(3):
        since = hasty.last_row()
        start_s = time.monotonic()
        answer = hasty.ask(model, rule(**how), **members)
        passed_s = time.monotonic() - start_s
        hasty.peace()
        (row,) = hasty.all_settled(since, 1)
        if deadline != "total" or row["error"] is None:
            break  # else this machine was silent for longer than a target may be
    assert b'"code":"upstream_timeout"' in answer.content
    assert after_s - 0.05 <= passed_s <= after_s + BOUNDS_S
    assert (row["status"], row["error"], row["http_status"]) == ("timeout", error, 504)


def test_comments_do_not_put_off_the_first_token(hasty, rule, answers) -> None:
    """Some providers send them for minutes while a request waits for its turn."""
    since = hasty.last_row()
    waiting = rule(
        answer=answers.HEAD + b"connection: close\r\n\r\n",
        endless=b": PROCESSING\n\n",
        pause_s=0.05,
    )
    start_s = time.monotonic()
    answer = hasty.ask("api", waiting, stream=True)
    assert b'"code":"upstream_timeout"' in answer.content
    assert time.monotonic() - start_s <= SOON_S + BOUNDS_S
    (row,) = hasty.all_settled(since, 1)
    assert (row["status"], row["error"]) == ("timeout", "head_timeout")


def test_a_target_that_takes_no_connection_is_given_up(hasty) -> None:
    """Its queue of connections is full: nothing refuses, and nothing answers."""
    stack = hasty.stack
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = []
    for _ in range(3):
        this_socket = socket.socket()
        this_socket.setblocking(False)
        this_socket.connect_ex(full.getsockname())
        waiting.append(this_socket)
    backend = stack.planner._routes._fleet._api_backends["alpha"]
    usual = backend._origin
    backend._origin = type(usual)(usual.scheme, "127.0.0.1", full.getsockname()[1])
    since, start_s = hasty.last_row(), time.monotonic()
    answer = stack.chat("api", max_tokens=3)
    backend._origin = usual
    assert answer.status_code == 502
    assert time.monotonic() - start_s <= SOON_S + BOUNDS_S
    (row,) = hasty.all_settled(since, 1)
    assert (row["status"], row["error"], row["cost_pusd"]) == ("rejected", "unreachable", 0)
    for this_socket in (*waiting, full):
        this_socket.close()


@pytest.fixture
def uncollected(monkeypatch) -> Iterator[None]:
    """No collection: none of this process's own, and none of the ledger writer's beside it."""
    monkeypatch.setattr(writer, "gc", SimpleNamespace(collect=lambda: 0))
    gc.disable()
    yield
    gc.enable()


def left_lying(faulty, rule, answers) -> int:
    """Requests that are over and wait for the collector: refused, broken off, and asked once."""
    error = rule(answer=answers.whole(b"{}", b"HTTP/1.1 500 Oh\r\n"))
    cut = rule(after_bytes=800, ending="reset")
    headers = {**faulty.stack.headers(), "idempotency-key": f"lying-{time.time_ns()}"}
    body = {"model": "own", "messages": MESSAGES, "max_tokens": 3}
    url = f"{faulty.stack.url}/v1/chat/completions"
    said = [
        faulty.ask(model, trouble, stream=trouble is cut)
        for trouble in (error, cut)
        for model in ("own", "api")
    ]
    faulty.ask("own", rule())
    said.append(httpx.post(url, json=body, headers=headers, trust_env=False))
    time.sleep(0.2)  # tasks end behind their answers
    names = {answer.headers["x-request-id"] for answer in said}
    return sum(
        isinstance(get_object_, ClientResponse) and get_object_.request_id in names
        for get_object_ in gc.get_objects()
    )


@pytest.mark.usefixtures("uncollected")
def test_what_fails_is_freed_at_once(peaceful, rule, answers) -> None:
    """An outage would fill the collector's list, and each of its runs stops every stream."""
    assert left_lying(peaceful, rule, answers) == 0


@pytest.mark.usefixtures("uncollected")
def test_without_letting_go_it_waits_for_the_collector(
    peaceful, rule, answers, monkeypatch
) -> None:
    """The control."""
    for module in (inference_api, dispatch):
        monkeypatch.setattr(module, "drop_traceback", lambda _: None)
    monkeypatch.setattr(ClientResponse, "detach", lambda _: None)
    assert left_lying(peaceful, rule, answers) >= 3
