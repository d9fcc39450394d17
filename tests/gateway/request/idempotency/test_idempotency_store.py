"""Of all requests with the same `Idempotency-Key` one is dispatched, and one is charged."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import httpx
import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.exc import OperationalError

from ledger import idempotency
from ledger.idempotency import IdempotencyRecord

AT_ONCE = 50
HOUR_US = 3_600_000_000
TIGHT = [{"scope": "team:poor", "usd": "0.00000001", "period": "day", "hard": True}]


@pytest.fixture(scope="module")
def stack(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), budgets=TIGHT) as stack:
        yield stack


@pytest.fixture(scope="module")
def postgres_stack(tmp_path_factory, running, postgres_server):
    ledger = {"url": postgres_server.url(postgres_server.create("submissions"))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.host.prepare.check_durable", lambda _: None)  # a quick server
        with running(tmp_path_factory.mktemp("host"), budgets=TIGHT, ledger=ledger) as stack:
            yield stack


@pytest.fixture(params=["stack", "postgres_stack"])
def each(request):
    return request.getfixturevalue(request.param)


def ask(stack, once: str, content: str = "hello there", **given) -> httpx.Response:
    """`given`: members of the body; `path`, `token`, `within_s`."""
    path, token = given.pop("path", "/v1/chat/completions"), given.pop("token", None)
    within_s = given.pop("within_s", 60)
    messages = [{"role": "user", "content": content}]
    body = {"model": "api", "messages": messages, "max_tokens": 3, **given}
    headers = {**stack.headers(token), "idempotency-key": once}
    return stack.client.post(stack.url + path, json=body, headers=headers, timeout=within_s)


def code(answer: httpx.Response) -> str | None:
    return answer.json()["error"]["code"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_request_is_told_of_the_first(each, stream) -> None:
    once = f"order-{stream}"
    first = ask(each, once, stream=stream)
    assert first.status_code == 200
    charged = len(each.entries("alpha"))
    second = ask(each, once, stream=stream)
    assert (second.status_code, code(second)) == (409, "duplicate_request")
    assert second.headers["x-should-retry"] == "false"
    assert first.headers["x-request-id"] in second.json()["error"]["message"]
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    other = ask(each, once, "something else", stream=stream)
    assert (other.status_code, code(other)) == (422, "idempotency_key_reused")
    assert first.headers["x-request-id"] in other.json()["error"]["message"]
    assert len(each.entries("alpha")) == charged
    assert len(each.settled(first)) == 1


def test_it_is_told_while_the_first_is_in_work(stack) -> None:
    with ThreadPoolExecutor(1) as pool:
        before = len(stack.entries("steady"))
        first = pool.submit(ask, stack, "slow", model="steady", max_tokens=12)
        while stack.app.hot.in_flight == 0:
            time.sleep(0.01)
        time.sleep(0.2)
        second = ask(stack, "slow", model="steady", max_tokens=12)
        assert not first.done()
        assert second.status_code == 409
        assert first.result().status_code == 200
    assert len(stack.entries("steady")) - before == 1


def test_other_keys_and_other_tokens_are_other_requests(stack) -> None:
    assert ask(stack, "mine").status_code == 200
    assert ask(stack, "mine", token=stack.key("another").token).status_code == 200
    assert ask(stack, "mine-too").status_code == 200


def test_the_path_belongs_to_what_was_asked(stack) -> None:
    assert ask(stack, "path", path="/v1/messages").status_code == 200
    other = ask(stack, "path")
    assert other.status_code == 422
    again = ask(stack, "path", path="/v1/messages")
    assert (again.status_code, again.json()["type"]) == (409, "error")


@pytest.mark.parametrize("once", ["", "x" * 256, "caf\u00e9", "a\tb"])
def test_a_key_that_is_no_name_is_refused(stack, once) -> None:
    answer = ask(stack, once.encode("latin-1"))
    assert answer.status_code == 400
    assert "`Idempotency-Key` must be 1 to 255 printable" in answer.json()["error"]["message"]
    assert ask(stack, "x" * 255).status_code in (200, 409)


def test_what_was_never_dispatched_leaves_the_key_free(each) -> None:
    missing = ask(each, "free-model", model="nothing")
    assert missing.status_code == 404
    assert ask(each, "free-model").status_code == 200
    poor = each.key("poor", team="poor").token
    for _ in range(2):
        assert ask(each, "free-budget", token=poor).status_code == 429


@pytest.mark.parametrize("status", [400, 401, 429])
def test_what_every_target_refused_leaves_the_key_free(stack, status) -> None:
    """400: the target's own answer is handed on; the others are failures of this gateway."""
    stack.fault("alpha", fault="status", status=status, times=1)
    once = f"refused-{status}"
    first = ask(stack, once)
    assert first.status_code >= 400
    stack.forgive("alpha")
    assert ask(stack, once, "put otherwise").status_code == 200
    assert ask(stack, once).status_code == 422


def test_what_may_be_charged_keeps_the_key(stack) -> None:
    stack.fault("alpha", fault="status", status=500, times=1)
    first = ask(stack, "failed")
    assert first.status_code == 502
    stack.forgive("alpha")
    assert ask(stack, "failed").status_code == 409


@pytest.mark.parametrize(("status", "later"), [(500, 409), (401, 200)])
def test_a_refusal_counts_only_if_nothing_before_it_may_be_charged(stack, status, later) -> None:
    """The cheaper target fails, or refuses; the other one's refusal is handed on."""
    stack.fault("alpha", fault="status", status=status, times=1)
    stack.fault("beta", fault="status", status=400, times=1)
    once = f"both-{status}"
    first = ask(stack, once, model="pair")
    assert first.status_code == 400
    assert [row["status"] for row in stack.settled(first, count=2)][1] == "rejected"
    stack.forgive("alpha")
    stack.forgive("beta")
    assert ask(stack, once, model="pair").status_code == later


def test_who_hung_up_keeps_the_key(stack) -> None:
    with pytest.raises(httpx.TimeoutException):
        ask(stack, "gone", model="steady", max_tokens=100, within_s=0.5)
    assert ask(stack, "gone", model="steady", max_tokens=100).status_code == 409


def test_days_later_it_is_another_request(each, monkeypatch) -> None:
    """The default is a day."""
    keeper = each.app.hot._dispatcher.submissions
    now_us = keeper._wall_us
    assert ask(each, "later").status_code == 200
    monkeypatch.setattr(keeper, "_wall_us", lambda: now_us() + 23 * HOUR_US)
    assert ask(each, "later").status_code == 409
    monkeypatch.setattr(keeper, "_wall_us", lambda: now_us() + 8 * 24 * HOUR_US)
    assert ask(each, "later").status_code == 200
    assert ask(each, "later").status_code == 409


def test_while_the_database_is_away_it_cannot_be_told(each, monkeypatch) -> None:
    engine = each.app.hot._dispatcher.submissions._engine

    def away(*_: object) -> None:
        raise OperationalError("BEGIN", {}, OSError("gone"))

    with monkeypatch.context() as patch:
        patch.setattr(type(engine), "begin", away)
        answer = ask(each, "away")
        assert (answer.status_code, code(answer)) == (503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert each.chat("api", max_tokens=3).status_code == 200  # without the header
    assert ask(each, "away").status_code == 200


def test_who_no_longer_waits_gives_back_what_it_gets(stack, monkeypatch) -> None:
    """The database answers when the client has its 503 already."""

    def late(*given: object, **named: object) -> IdempotencyRecord:
        time.sleep(0.3)
        return idempotency.claim_key(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr("gateway.request.idempotency.idempotency_store.claim_key", late)
        patch.setattr("gateway.request.idempotency.idempotency_store.WAIT_S", 0.1)
        assert ask(stack, "late").status_code == 503
    time.sleep(0.6)
    assert ask(stack, "late").status_code == 200


AGAIN = 10  # times that a client asks while a slow machine's ledger cannot tell


class Crowd:
    """Clients that each ask with every key, in the same order; `url` may change between two times.

    `firsts`: ids of requests that were answered.
    """

    def __init__(self, token: str, keys: int, model: str) -> None:
        self.token, self.model = token, model
        self.keys = [f"{model}-{number}" for number in range(keys)]
        self.statuses: Counter[int] = Counter()
        self.firsts: list[str] = []

    def ask(self, url: str) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for said in pool.map(self._client, [url] * AT_ONCE):
                self.statuses.update(status for status, _ in said)
                self.firsts += [name for status, name in said if status == 200]

    def _client(self, url: str) -> list[tuple[int, str]]:
        with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as line:
            return [self._one(line, key) for key in self.keys]

    def _one(self, line: HTTPConnection, key: str) -> tuple[int, str]:
        messages = [{"role": "user", "content": key}]
        body = {"model": self.model, "max_tokens": 2, "messages": messages}
        headers = {
            "authorization": f"Bearer {self.token}", "content-type": "application/json",
            "idempotency-key": key,
        }  # fmt: skip
        for _ in range(AGAIN):  # who is told to come again in a second does, as every SDK
            line.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = line.getresponse()
            answer.read()
            if answer.status != 503:
                break
            time.sleep(float(answer.headers["retry-after"]))
        return answer.status, answer.headers["x-request-id"]

    def settled(self, rows: list[dict]) -> bool:
        """Everything that was answered is in the books, and nothing in them is open."""
        known = {row["request_id"] for row in rows}
        return known.issuperset(self.firsts) and all(row["settled_us"] for row in rows)

    def faults(self, rows: list[dict], calls: list[dict]) -> list[str]:
        """Keys that were not answered once, and answers without one call and one settled row."""
        print(f"\n{AT_ONCE} x {len(self.keys)} keys, twice: {dict(self.statuses)}")
        booked = Counter(row["request_id"] for row in rows if row["settled_us"])
        called = Counter(call["request_id"].partition(".")[0] for call in calls)
        once = {200: len(self.keys), 409: (2 * AT_ONCE - 1) * len(self.keys)}
        found = [] if self.statuses == once else [f"answers: {dict(self.statuses)}"]
        return found + [
            f"{name}: {booked[name]} rows, {called[name]} calls"
            for name in self.firsts
            if (booked[name], called[name]) != (1, 1)
        ]


async def restarted(stack) -> None:
    server, task = stack._servers.pop()
    server.should_exit = True
    await task
    stack.registry = CollectorRegistry()  # a process of its own would have one
    await stack.start_gateway()


def asked_twice(stack, patiently, keys: int) -> list[str]:
    """By a crowd, and over a restart by the same crowd again."""
    calls, crowd = len(stack.entries("alpha")), Crowd(stack.token, keys, "api")
    crowd.ask(stack.url)
    stack.call(restarted(stack))
    crowd.ask(stack.url)
    patiently(lambda: crowd.settled(stack.rows()))
    return crowd.faults(stack.rows(), stack.entries("alpha")[calls:])


def test_fifty_at_once_and_over_a_restart_are_one_call_and_one_row(each, patiently) -> None:
    assert asked_twice(each, patiently, 2) == []


def test_without_the_row_all_of_them_would_be_calls(stack, patiently, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(
        "gateway.request.idempotency.idempotency_store.claim_key", lambda _, asking, **__: asking
    )
    assert asked_twice(stack, patiently, 1) == ["answers: {200: 100}"]


@pytest.mark.long
def test_a_killed_host_and_its_two_workers_keep_to_it(make_host, patiently) -> None:
    host = make_host()
    host.start()
    crowd = Crowd(host.token, 1000, "own")
    crowd.ask(host.url)
    host.kill_all()
    host.start()
    crowd.ask(host.url)
    patiently(lambda: crowd.settled(host.rows()), 40)
    assert crowd.faults(host.rows(), host.upstream()) == []
    assert host.terminate() == 0
