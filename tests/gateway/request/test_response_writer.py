"""What the client reads is what the target sent, but for the usage it did not ask for."""

import asyncio
import json
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest

from backends.errors import (
    BackendError,
    ContextTooLong,
    HeadTimeout,
    ModelNotServed,
    RequestDeclined,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
    WrongAddress,
)
from backends.secret import Secret
from gateway.kinds.relay import ByteRelay
from gateway.request import response_writer
from gateway.request.response_writer import _usd
from router.request_kinds import RequestKind
from router.stages import StageCause
from router.types import Feature

BODY = {"messages": [{"role": "user", "content": "say it again"}], "max_tokens": 30}
OPTIONS = {"include_usage": True}
OUR_KEY = "4f0c9e-our-own"
ROUTE = SimpleNamespace(deadlines=None, later=(), is_staged=False)


def streamed(stack, **members) -> httpx.Response:
    path = "/v1/completions" if "prompt" in members else "/v1/chat/completions"
    base = {} if "prompt" in members else BODY
    answer = stack.post(path, {**base, "stream": True, **members})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return answer


def upstreams(stack, model: str, body: dict) -> bytes:
    """The same request, asked of the target itself."""
    port = stack.ports["engine" if model == "own" else "alpha"]
    name = "llama" if model == "own" else "m"
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return httpx.post(url, json={**body, "model": name}, trust_env=False).content


def without(document, *names: str):
    return {key: value for key, value in document.items() if key not in names}


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("n", [1, 2])
def test_a_stream_is_the_targets_but_for_usage_not_asked_for(
    stack, events_of, model: str, asked: bool, n: int
) -> None:
    options = {"stream_options": OPTIONS} if asked else {}
    answer = streamed(stack, model=model, n=n, **options)
    mine = events_of(answer.content)
    theirs = events_of(upstreams(stack, model, {**BODY, "stream": True, "n": n, **options}))
    assert mine[-1] == theirs[-1] == "[DONE]"
    changing = ("id", "created", "model", "usage")

    def told(events) -> list[str]:
        texts = [""] * n
        for event in events[:-1]:
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
        return texts

    assert told(mine) == told(theirs)
    assert [set(without(item)) for item in mine[:1]] == [
        set(without(their)) for their in theirs[:1]
    ]
    assert without(mine[0], *changing) == without(theirs[0], *changing)
    used = [event["usage"] for event in mine[:-1] if event.get("usage")]
    (row,) = stack.settled(answer)
    assert (row["status"], row["basis"], row["output_tokens"]) == ("finished", "reported", 30 * n)
    if asked:
        (usage,) = used
        assert usage["completion_tokens"] == row["output_tokens"]
        assert usage["prompt_tokens"] == row["input_tokens"] + row["cached_tokens"]
    else:
        assert used == []


def test_running_usage_is_kept_for_a_client_that_asked_for_it(stack, events_of) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = events_of(streamed(stack, model="own", stream_options=options).content)
    running = [event["usage"]["completion_tokens"] for event in events[1:-1]]
    assert running == sorted(running)
    assert running[-1] == 30


def test_tool_calls_and_logprobs_stream(stack, events_of) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    events = events_of(streamed(stack, model="own", tools=[tool], tool_choice="required").content)
    calls = [
        call
        for event in events[:-1]
        for choice in event["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert "".join(call["function"]["arguments"] for call in calls) == "{}"
    likely = events_of(streamed(stack, model="own", logprobs=True).content)
    assert any(choice["logprobs"] for event in likely[1:-1] for choice in event["choices"])


def test_a_list_of_prompts_streams_every_choice_to_its_end(stack, events_of) -> None:
    answer = streamed(stack, model="own", prompt=["one", "two", "three"], max_tokens=7)
    events = events_of(answer.content)
    ends = [
        choice["index"]
        for event in events[:-1]
        for choice in event["choices"]
        if choice["finish_reason"]
    ]
    assert sorted(ends) == [0, 1, 2]
    (row,) = stack.settled(answer)
    assert row["output_tokens"] == 21
    # Each prompt may use the whole limit: that is what the bound was taken for.
    assert row["bound_pusd"] >= row["cost_pusd"]


def test_headers_name_target_policy_and_reason(stack) -> None:
    answer = streamed(stack, model="api")
    assert answer.headers["x-breakeven-backend"] == "alpha/m"
    assert answer.headers["x-breakeven-policy"] == "plain"
    decision = answer.headers["x-breakeven-decision"]
    assert "stage=" not in decision, "its model has one stage"
    assert "api:" in decision
    assert "cap=" not in decision, "it set its own limit"
    assert answer.headers["x-request-id"].startswith("req_")
    assert "x-breakeven-cost-usd" not in answer.headers


def test_the_end_waits_until_the_row_is_durable(stack, patiently, monkeypatch) -> None:
    """With the disk held, content flows, finish and `[DONE]` do not; they come with the flush."""
    journal = stack.app.hot._dispatcher.metering._journal
    asked, released = asyncio.Event(), asyncio.Event()
    behind = journal._behind
    place, name = (behind, "start_flush") if behind else (journal, "flush")
    flush = getattr(place, name)

    async def slow_flush() -> None:
        asked.set()
        await released.wait()
        await flush()

    monkeypatch.setattr(place, name, slow_flush)
    connection = stack.raw({**BODY, "model": "own", "stream": True})
    patiently(asked.is_set)
    early = connection.recv(1 << 20)
    assert b'"content"' in early
    assert b"[DONE]" not in early
    assert b'"finish_reason":"length"' not in early
    stack.call(_set(released))
    late = b""
    while b"[DONE]" not in late:
        late += connection.recv(1 << 20)
    assert late.count(b'"finish_reason":"length"') == 1
    connection.close()


async def _set(event: asyncio.Event) -> None:
    event.set()


def test_a_refusal_of_the_target_is_the_answer(stack) -> None:
    stack.fault("alpha", fault="status", status=422)
    answer = stack.chat("api", max_tokens=3)
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "server_error")
    assert answer.headers["x-breakeven-backend"] == "alpha/m"
    (row,) = stack.settled(answer)
    assert (row["status"], row["http_status"], row["cost_pusd"]) == ("rejected", 422, 0)


def test_an_engines_refusal_comes_in_openais_shape(stack) -> None:
    """vLLM names a class and repeats the status as a number; clients look for other words."""
    body = {"input": [[2**40]]}
    url = f"http://127.0.0.1:{stack.ports['engine']}/v1/embeddings"
    theirs = httpx.post(url, json={**body, "model": "llama"}, trust_env=False).json()["error"]
    assert (theirs["type"], theirs["code"]) == ("Bad Request", 400)
    refused = stack.post("/v1/embeddings", {**body, "model": "embed"})
    assert refused.status_code == 400
    assert refused.json()["error"] == {
        "message": theirs["message"],
        "type": "invalid_request_error",
        "param": "body.prompt",
        "code": None,
    }


def test_store_goes_where_answers_are_kept_and_is_refused_elsewhere(run_stack, monkeypatch) -> None:
    """Where the gateway itself keeps none."""
    with run_stack(store={"enabled": False}) as stack:
        refused = stack.chat("chat", store=True, max_tokens=3)
        error = refused.json()["error"]
        assert (refused.status_code, error["param"]) == (400, "store")
        assert error["code"] == "unsupported_parameter"
        assert stack.chat("chat", store=False, max_tokens=3).status_code == 200
        planner = stack.planner
        fleet = planner._routes._fleet
        ((own, api),) = fleet._by_model["chat"]
        monkeypatch.setattr(planner._routes, "_known", {})  # routes are found once
        keeping = replace(api, features=api.features | {Feature.STORE})
        monkeypatch.setitem(fleet._by_model, "chat", ((own, keeping),))
        bodies: list[bytes] = []
        send = api.backend.open

        async def open_(call):
            bodies.append(call.body)
            return await send(call)

        monkeypatch.setattr(api.backend, "open", open_)
        kept = stack.chat("chat", store=True, max_tokens=3)
        assert (kept.status_code, kept.headers["x-breakeven-backend"]) == (200, "alpha/m")
        assert json.loads(bodies[0])["store"] is True


def test_five_faults_of_clients_open_no_circuit(stack) -> None:
    stack.fault("alpha", fault="status", status=422, times=6)
    assert [stack.chat("api", max_tokens=3).status_code for _ in range(6)] == [422] * 6
    assert stack.chat("api", max_tokens=3).status_code == 200


def test_money_is_shown_to_the_last_digit() -> None:
    assert _usd(0) == b"0.000000000000"
    assert _usd(1) == b"0.000000000001"
    assert _usd(12_345_678_901_234) == b"12.345678901234"


def test_the_bytes_of_an_event_are_not_touched(stack) -> None:
    """Odd spacing, unknown members and any order come through as they are."""
    answer = streamed(stack, model="api")
    for event in answer.content.split(b"\n\n")[:-2]:
        document = event.removeprefix(b"data: ")
        rewritten = json.dumps(json.loads(document), separators=(",", ":"), ensure_ascii=False)
        assert json.loads(document)["model"] == "m"
        assert document.decode() == rewritten


class SettledError(Exception):
    """Ends the delivery once its outcome is known."""


@pytest.mark.parametrize("stream", [True, False])
async def test_the_answers_tier_reaches_the_books(stream, monkeypatch) -> None:
    outcomes = []

    async def settle(_attempt, outcome) -> None:
        outcomes.append(outcome)
        raise SettledError

    async def answered():
        body = b'{"choices":[{"index":0,"finish_reason":"stop"}],"service_tier":"flex"}'
        yield b"data: " + body + b"\n\ndata: [DONE]\n\n" if stream else body

    class Answer:
        status, headers = 200, {}

        def __aiter__(self):
            return answered()

        async def aclose(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(response_writer, "_headers", lambda *_: [])
    asked = SimpleNamespace(
        kind=RequestKind.CHAT, stream=stream, n=1, prompts=1, wants_usage=True,
        wants_running_usage=False,
    )  # fmt: skip
    attempt = SimpleNamespace(
        plan=SimpleNamespace(asked=asked, route=ROUTE),
        prefill=None,
        leads_to_stage=lambda _: False,
        own=False,
        events=0,
        relay=None,
        observe_content=lambda *_: None,
        first_token_s=None,
        dispatched_s=0.0,
    )
    handing = response_writer.ResponseWriter(
        SimpleNamespace(settle=settle), SimpleNamespace(now_s=lambda: 1.0)
    )
    with pytest.raises(SettledError):
        await handing.answer(attempt, Answer(), SimpleNamespace(started=False, ended_by=None))
    assert [outcome.tier for outcome in outcomes] == ["flex"]


WHOLE = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{}}'
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
RANKING = b'{"results":[{"index":0}],"meta":{"billed_units":{"search_units":1}}}'


@pytest.mark.parametrize(
    ("kind", "body", "media", "shown"),
    [
        (RequestKind.CHAT, WHOLE, "application/json", b"application/json"),
        (RequestKind.CHAT, CHUNK + b"data: [DONE]\n\n", "text/event-stream", None),
        (RequestKind.RERANK, RANKING, "application/json", b"application/json"),
        (RequestKind.TRANSCRIPTION, b"hi there", "text/plain", b"text/plain; charset=utf-8"),
    ],
)
@pytest.mark.parametrize("ended_by", [None, "client_gone"])
async def test_an_answer_whose_client_left_is_settled_as_read_on_and_sent_to_nobody(
    monkeypatch, kind, body, media, shown, ended_by
) -> None:
    monkeypatch.setattr(response_writer, "_headers", lambda _, *first: [*first])
    outcomes, sent = [], []

    async def settle(_attempt, outcome) -> int:
        outcomes.append(outcome)
        return 7

    async def whole(status, headers, text) -> None:
        sent.append((status, dict(headers), text))

    async def start(status, headers) -> None:
        sent.append((status, dict(headers)))

    async def rest(part, *, more) -> None:
        sent.append((part, more))

    class Answer:
        status, headers = 200, {"content-type": media}

        async def __aiter__(self):
            yield body

        async def aclose(self) -> None:
            """Nothing is open."""

    asked = SimpleNamespace(
        kind=kind, stream=media == "text/event-stream", n=1, prompts=1, wants_usage=True,
        wants_running_usage=False,
    )  # fmt: skip
    attempt = SimpleNamespace(
        plan=SimpleNamespace(asked=asked, route=ROUTE), own=False, events=0, relay=None,
        booked=None, record=None, prefill=None, leads_to_stage=lambda _: False,
        observe_content=lambda *_: None, start_answer=lambda: None, first_token_s=None,
        dispatched_s=0.0,
    )  # fmt: skip
    reply = SimpleNamespace(
        started=False, ended_by=ended_by, keeps=None, send_whole=whole, start=start, body=rest,
        push=lambda _part: b"", set_usage=lambda _tokens, _choice: None,
    )  # fmt: skip
    clock = SimpleNamespace(now_s=lambda: 1.0)
    await response_writer.ResponseWriter(SimpleNamespace(settle=settle), clock).answer(
        attempt, Answer(), reply
    )
    (outcome,) = outcomes
    if ended_by is not None:
        assert (outcome.status, outcome.http_status, outcome.read_on) == ("client_gone", 499, True)
        assert sent == []
        return
    assert (outcome.status, outcome.http_status, outcome.read_on) == ("finished", 200, False)
    if shown is None:
        assert sent[-1] == (body, False)
    else:
        price = {b"x-breakeven-cost-usd": b"0.000000000007"}
        assert sent == [(200, {b"content-type": shown} | price, body)]


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (200, {"error": {"message": "quoted", "code": "boom"}}, StreamError),
        (200, {"error": {"message": "quoted", "code": "busy"}}, UpstreamOverloaded),
        (200, {"error": {"message": "quoted", "code": 400}}, RequestDeclined),
        (404, {"detail": "Not Found"}, WrongAddress),
        (405, {"detail": "Method Not Allowed"}, WrongAddress),
    ],
)
async def test_what_is_no_answer_is_tried_elsewhere(told_of, status, body, raised) -> None:
    with pytest.raises(raised):
        await told_of(status, body)


async def test_an_engine_that_is_without_an_adapter_leaves_its_requests_to_the_next(
    told_of,
) -> None:
    """The name is ours, not the client's; an API's may be, as of a deployment that is gone."""
    body = {"error": {"message": "The model `sql` does not exist.", "code": 404}}
    with pytest.raises(ModelNotServed):
        await told_of(404, body, own=True, last=False)
    for whose in ({"own": True, "last": True}, {"own": False, "last": False}):
        assert b"`sql` does not exist" in await told_of(404, body, **whose)


async def test_an_api_without_the_model_leaves_its_requests_to_a_stage_for_failures(
    told_of,
) -> None:
    """The client named a model of ours: LiteLLM's fallbacks were asked, and our stage was not."""
    body = {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}
    with pytest.raises(ModelNotServed):
        await told_of(404, body, staged=True)
    assert b"does not exist" in await told_of(404, body)


async def test_a_prompt_that_is_too_long_for_a_target_is_left_to_the_next(told_of) -> None:
    body = {"error": {"message": "This model's maximum context length is 4096 tokens."}}
    with pytest.raises(ContextTooLong):
        await told_of(400, body, last=False)
    for status, said, last in ((400, body, True), (422, body, False), (400, {}, False)):
        assert b'"error"' in await told_of(status, said, last=last)


@pytest.mark.parametrize("status", [400, 404])
async def test_a_refusal_quotes_no_key_of_ours(told_of, status) -> None:
    body = {"error": {"message": f"no model for {OUR_KEY}"}}
    assert json.loads(await told_of(status, body))["error"]["message"] == "no model for ***"


@pytest.fixture
def told_of(monkeypatch):
    """What a client is told of a whole answer; nothing is settled where it raises."""
    monkeypatch.setattr(response_writer, "_headers", lambda *_: [])

    async def told(status, body, *, own=False, last=True, staged=False) -> bytes:
        settled, sent = [], []

        class Answer:
            async def __aiter__(self):
                yield json.dumps(body).encode()

            async def aclose(self) -> None:
                """Nothing is open."""

        async def settle(_attempt, outcome) -> None:
            settled.append(outcome.status)

        async def whole(_status, _headers, text) -> None:
            sent.append(text)

        Answer.status = status
        target = SimpleNamespace(backend=SimpleNamespace(secrets=(Secret(OUR_KEY),)))
        attempt = SimpleNamespace(
            plan=SimpleNamespace(asked=SimpleNamespace(kind=RequestKind.CHAT, stream=False)),
            step=SimpleNamespace(frozen=SimpleNamespace(target=target)),
            observe_content=lambda *_: None,
            leads_on=lambda _: not last,
            prefill=None,
            leads_to_stage=lambda cause: staged and cause is StageCause.FAILURE,
            own=own,
        )
        clock = SimpleNamespace(now_s=lambda: 1.0)
        handing = response_writer.ResponseWriter(SimpleNamespace(settle=settle), clock)
        try:
            await handing.answer(
                attempt, Answer(), SimpleNamespace(send_whole=whole, ended_by=None)
            )
        except BackendError:
            assert settled == sent == []
            raise
        assert settled == ["rejected"]
        return sent[0]

    return told


def event(text: str, finish: str = "null") -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}'
    return f'data: {{"choices":[{choice}]}}\n\n'.encode()


@pytest.fixture
def stream():
    """A stream to a client that takes `taken` parts; what was pushed to it, what was seen."""

    def made(taken: int = 99, first_s: float = 60.0):
        pushed, seen = [], []

        def push(part: bytes) -> bytes:
            if len(pushed) == taken:
                return part
            pushed.append(part)
            return b""

        attempt = SimpleNamespace(
            events=0,
            dispatched_s=0.0,
            first_token_s=None,
            prefill=None,
            leads_to_stage=lambda _: False,
            observe_content=lambda *what: seen.append(what),
        )
        reply = SimpleNamespace(push=push, ended_by=None)
        return (
            response_writer.StreamSink(attempt, ByteRelay(False), reply, lambda: 7.0, first_s),
            pushed,
            seen,
        )

    return made


def test_content_flows_and_its_end_stops_the_flow(stream) -> None:
    flowing, pushed, seen = stream()
    assert flowing(event("a"))
    assert flowing(event("b")[:20])  # half an event is nothing to send, and no reason to stop
    assert flowing(event("b")[20:])
    assert pushed == [event("a"), event("b")]
    assert seen[0] == (7.0, 1)
    assert flowing(event("", '"stop"'))  # withheld, and `[DONE]` may follow
    assert not flowing(b"data: [DONE]\n\n")
    assert (len(pushed), flowing.held, flowing.error) == (2, b"", None)


def test_what_the_client_does_not_take_is_held_and_stops_the_flow(stream) -> None:
    flowing, pushed, _ = stream(taken=1)
    assert flowing(event("a"))
    assert not flowing(event("b"))
    assert (pushed, flowing.held) == ([event("a")], event("b"))


def test_what_breaks_stops_the_flow_after_what_was_good(stream) -> None:
    flowing, pushed, _ = stream(taken=1)
    assert not flowing(event("a") + event("b") + b"data: nonsense\n\n")
    assert pushed == [event("a") + event("b")]
    assert isinstance(flowing.error, UpstreamBroken)
    assert flowing.held == b""
    assert not flowing(event("c"))
    assert isinstance(flowing.error, UpstreamBroken)
    assert (len(pushed), flowing.held) == (1, b"")
    slow, _, _ = stream(taken=0)
    assert not slow(event("a") + b"data: nonsense\n\n")
    assert (slow.held, isinstance(slow.error, UpstreamBroken)) == (event("a"), True)


def test_comments_do_not_prolong_the_wait_for_the_first_token(stream) -> None:
    flowing, pushed, _ = stream(first_s=8.0)
    assert flowing(b": alive\n\n")
    flowing, _, _ = stream(first_s=6.0)
    assert not flowing(b": alive\n\n")
    assert isinstance(flowing.error, HeadTimeout)
    assert flowing.held == b""
    assert stream(first_s=6.0)[0](event("a"))  # late, and here
    assert pushed == [b": alive\n\n"]


def test_a_client_that_pauses_gets_every_byte_in_its_order(stack) -> None:
    """Its buffers fill, the flow stops and goes on: the text is that of a client that reads on."""
    body = {**BODY, "model": "own", "stream": True, "ignore_eos": True, "max_tokens": 1000, "n": 8}
    body |= {"logprobs": True, "top_logprobs": 1}  # long, however many tokens come in one piece

    def read(*, paused_s: float) -> tuple[list[str], int]:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", stack.port))
        connection.settimeout(30)
        data = json.dumps(body).encode()
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n"
            b"content-type: application/json\r\nauthorization: Bearer %s\r\n"
            b"content-length: %d\r\n\r\n%s" % (stack.token.encode(), len(data), data)
        )
        raw = connection.recv(4096)
        time.sleep(paused_s)
        while more := connection.recv(1 << 16):
            raw += more
        connection.close()
        _, _, framed = raw.partition(b"\r\n\r\n")
        text = unchunked(framed)
        assert text.endswith(b"data: [DONE]\n\n")
        told = [""] * 8
        events = text.split(b"\n\n")[:-2]
        for event in events:
            for choice in json.loads(event.removeprefix(b"data: "))["choices"]:
                told[choice["index"]] += choice["delta"].get("content") or ""
        return told, len(text)

    slow, size = read(paused_s=1.0)
    assert size > 1 << 20  # more than all buffers on the way hold
    assert slow == read(paused_s=0.0)[0]


def unchunked(framed: bytes) -> bytes:
    parts, place = [], 0
    while place < len(framed):
        begin = framed.index(b"\r\n", place) + 2
        end = begin + int(framed[place:begin], 16)
        parts.append(framed[begin:end])
        assert framed[end : end + 2] == b"\r\n"
        place = end + 2
    return b"".join(parts)
