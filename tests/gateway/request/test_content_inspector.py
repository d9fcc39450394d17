"""What must stay inside never reaches an API, whatever happens to a request on its way."""

import base64
import contextlib
import json
import re
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from stage_upstream import StageUpstream

from deploy.upstream_server import UpstreamServer
from gateway.request.retry_budget import RESERVE
from gateway.table_layout import ApiStatsCell

CARD = "4111 1111 1111 1111"
MARK = "MARKED-TEXT"  # stands in each request that must stay
KEPT = {"card": "keep_inside", "iban": "keep_inside", "secret": "keep_inside"}
MASKED = {"card": "mask", "email": "mask"}
HIDDEN = (
    CARD, "4111-1111-1111-1111", "\uff14" + 15 * "\uff11", "4111\u200b1111\u200b1111\u200b1111",
    "\\u0034111111111111111", "&#52;111111111111111", "%34%31%31%31111111111111",
    base64.b64encode(b"my card: 4111111111111111").decode(), b"4111111111111111".hex(),
)  # fmt: skip
FIRST_FAILS = {"a": "500", "b": "500"}


class RecordingUpstream(StageUpstream):
    """Keeps each byte that an API gets: bodies and heads."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[bytes] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def recorded() -> Any:
            message = await receive()
            self.received.append(message.get("body", b""))
            return message

        self.received.append(repr((scope["path"], scope["headers"])).encode())
        await super().__call__(scope, recorded, send)

    def holds(self, text: str) -> bool:
        return text.encode() in b"".join(self.received)


@pytest.fixture(scope="module")
def upstream():
    with RecordingUpstream() as found:
        yield found


@pytest.fixture(scope="module")
def guarded(running, tmp_path_factory, upstream):
    def adjust(document, _ports):
        document["providers"] |= {
            name: {"base_url": upstream.url(name), "prices_as": "openai/gpt-4o-mini"}
            for name in "abcd"
        }
        document["providers"]["d"]["kind"] = "anthropic"
        document["models"] |= {
            "mixed": {"targets": ["pool:main", "a/m", "b/m"],
                      "compare_with": ["openai/gpt-4o-mini"]},
            "outside": {"targets": ["a/m", "b/m"],
                        "then": [{"after": "failure", "targets": ["c/m"]}]},
            "staged": {"targets": ["a/m"], "then": [
                {"after": "failure", "targets": ["b/m"]},
                {"targets": ["pool:main", "c/m"]},
            ], "compare_with": ["openai/gpt-4o-mini"]},
            "claude": {"targets": ["d/m"]},
            "masked": {"targets": ["a/m"]},
            "careless": {"targets": ["a/m"]},
            "refused": {"targets": ["pool:main", "a/m"], "compare_with": ["openai/gpt-4o-mini"]},
        }  # fmt: skip
        document["policies"] = [
            {"name": "careless", "match": {"models": ["careless"]}},
            {"name": "masked", "match": {"models": ["masked"]},
             "content": {**MASKED, "unknown": "record"}},
            {"name": "refused", "match": {"models": ["refused"]}, "content": {"card": "refuse"}},
            {"name": "split", "match": {"models": ["mixed"]}, "content": KEPT,
             "canary": {"target": "a/m", "percent": 100}},
            {"name": "kept", "content": KEPT},
        ]  # fmt: skip

    with running(tmp_path_factory.mktemp("host"), adjust=adjust) as stack:
        yield stack


@pytest.fixture(autouse=True)
def clean(request, upstream):
    if "guarded" not in request.fixturenames:
        return
    stack = request.getfixturevalue("guarded")
    upstream.says, upstream.asked, upstream.received = {}, [], []
    stack.app.hot._dispatcher.retries._balance = RESERVE
    for row in range(len(stack.runtime.apis)):
        base = stack.board.api_stats_row(0, row)
        for cell in range(base, base + len(ApiStatsCell)):
            stack.board.cells[cell] = 0.0


def bodies_of(model: str, hidden: str) -> dict[str, dict[str, Any]]:
    """The same in each form in which a request can hold a text, by path."""
    words = f"{MARK} pay with {hidden} please"
    half = len(hidden) // 2
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "pay", "arguments": json.dumps({"card": hidden, "n": MARK})},
    }
    return {
        "/v1/chat/completions#plain": {"messages": [{"role": "user", "content": words}]},
        "/v1/chat/completions#system": {"messages": [
            {"role": "system", "content": words}, {"role": "user", "content": "hi"}]},
        "/v1/chat/completions#call": {"messages": [
            {"role": "user", "content": MARK}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "done"}]},
        "/v1/chat/completions#result": {"messages": [
            {"role": "user", "content": MARK}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": words}]},
        "/v1/chat/completions#split": {"messages": [{"role": "user", "content": [
            {"type": "text", "text": f"{MARK} {hidden[:half]}"},
            {"type": "text", "text": hidden[half:]}]}]},
        "/v1/chat/completions#tools": {"messages": [{"role": "user", "content": MARK}], "tools": [
            {"type": "function", "function": {"name": "f", "description": words}}]},
        "/v1/chat/completions#stream": {
            "messages": [{"role": "user", "content": words}], "stream": True},
        "/v1/completions#plain": {"prompt": words},
        "/v1/embeddings#plain": {"input": ["one", words]},
        "/v1/responses#plain": {"input": words, "store": False},
        "/v1/responses#parts": {"store": False, "instructions": words, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
        "/v1/messages#plain": {"max_tokens": 5, "system": words,
                               "messages": [{"role": "user", "content": "hi"}]},
        "/v1/messages#blocks": {"max_tokens": 5, "messages": [{"role": "user", "content": [
            {"type": "text", "text": words}]}]},
        "/v1/messages/count_tokens#count": {"messages": [{"role": "user", "content": words}]},
    }  # fmt: skip


# How a request of each kind asks for a short answer: the engine makes each token of a long one.
BRIEF: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"max_tokens": 3}, "/v1/completions": {"max_tokens": 3},
    "/v1/responses": {"max_output_tokens": 16},
}  # fmt: skip


def ask_all(stack, model: str, hidden: str) -> dict[str, Any]:
    """Return each one's answer by place; they are asked side by side."""
    bodies = bodies_of(model, hidden)

    def ask(place: str) -> Any:
        path = place.partition("#")[0]
        return stack.post(path, {"model": model, **bodies[place], **BRIEF.get(path, {})})

    with ThreadPoolExecutor(len(bodies)) as pool:
        return dict(zip(bodies, pool.map(ask, bodies), strict=True))


@pytest.mark.parametrize("model", ["mixed", "outside", "staged", "claude"])
def test_no_api_gets_a_byte_of_what_stays(guarded, upstream, model) -> None:
    upstream.says = FIRST_FAILS if model == "staged" else {}
    for hidden in HIDDEN:
        for place, answer in ask_all(guarded, model, hidden).items():
            assert not upstream.holds(MARK), f"{place} with {hidden!r} left"
            if "embeddings" in place or "count_tokens" in place:
                continue
            served = model in ("mixed", "staged") and not place.startswith("/v1/completions")
            assert answer.status_code == 200 if served else answer.status_code in (200, 400, 403), (
                f"{place} {hidden!r}: {answer.text}"
            )
            if answer.status_code == 403:
                assert "card" in answer.text
                assert CARD not in answer.text


def test_the_same_requests_leave_where_no_policy_looks(guarded, upstream) -> None:
    """The control: the recorder hears what leaves."""
    left = set()
    for place, body in bodies_of("careless", CARD).items():
        upstream.received.clear()
        guarded.post(place.partition("#")[0], {"model": "careless", **body})
        left |= {place} if upstream.holds(MARK) else set()
    assert {place for place in bodies_of("", "") if "count" not in place} - left <= {
        "/v1/embeddings#plain", "/v1/completions#plain",  # which no provider here serves
    }  # fmt: skip


def test_nothing_leaves_under_load_and_failures(guarded, upstream) -> None:
    upstream.says = {"a": "500"}
    lock, served = threading.Lock(), [0]

    def ask(number: int) -> None:
        hidden, model = HIDDEN[number % len(HIDDEN)], ("mixed", "staged", "outside")[number % 3]
        answer = guarded.chat(
            model, max_tokens=3, messages=[{"role": "user", "content": f"{MARK} {hidden}"}]
        )
        assert answer.status_code in (200, 403, 429, 503), answer.text
        with lock:
            served[0] += answer.status_code == 200

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(120)))
    assert served[0] > 20
    assert not upstream.holds(MARK)


def test_what_is_masked_is_not_sent_and_the_rest_is(guarded, upstream) -> None:
    for hidden in HIDDEN:
        upstream.received.clear()
        words = f"{MARK} pay with {hidden} or {CARD}, a@b.com, not c@d.org and a@b.com"
        answer = guarded.chat("masked", messages=[{"role": "user", "content": words}])
        assert answer.status_code == 200, answer.text
        sent = b"".join(upstream.received)
        assert upstream.holds(MARK)
        assert not upstream.holds(hidden)
        assert not upstream.holds(json.dumps(hidden).strip('"'))
        for text in (b"4111 1111", b"a@b.com", b"c@d.org"):
            assert text not in sent
        assert sent.count(b"[email-1]") == 2
        assert sent.count(b"[card-1]") == 2
        assert answer.headers["x-breakeven-content"].endswith("; mask")


def test_the_bound_of_a_masked_request_is_of_what_is_sent(guarded) -> None:
    text = "; ".join([CARD] * 40)
    bounds = {}
    for model in ("masked", "careless"):
        answer = guarded.chat(model, messages=[{"role": "user", "content": text}], max_tokens=5)
        assert answer.status_code == 200, answer.text
        (bounds[model],) = guarded.settled(answer)
    masked, sent = bounds["masked"], bounds["careless"]
    assert masked["bound_pusd"] < sent["bound_pusd"]


def test_a_refusal_names_kinds_and_never_the_text(guarded, upstream) -> None:
    answer = guarded.chat("refused", messages=[{"role": "user", "content": f"{MARK} {CARD}"}])
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "content_refused"
    assert "`card`" in error["message"]
    assert "4111" not in answer.text
    assert upstream.received == []


def test_what_was_found_stands_in_row_and_header(guarded) -> None:
    clean = guarded.chat("mixed", messages=[{"role": "user", "content": "hello"}])
    found = guarded.chat("mixed", messages=[{"role": "user", "content": f"{CARD} and {CARD}"}])
    (row,) = guarded.settled(found)
    assert found.headers["x-breakeven-content"] == row["content"] == "card=2; keep_inside"
    assert (row["backend"], row["spill_reason"]) == ("own", None)
    (row,) = guarded.settled(clean)
    assert clean.headers["x-breakeven-content"] == row["content"] == "nothing"
    off = guarded.chat("careless", messages=[{"role": "user", "content": CARD}])
    (row,) = guarded.settled(off)
    assert "x-breakeven-content" not in off.headers
    assert row["content"] is None


def test_a_picture_is_unknown_and_stays(guarded, upstream) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    words = {"type": "text", "text": MARK}
    answer = guarded.chat("outside", messages=[{"role": "user", "content": [words, picture]}])
    assert answer.status_code in (400, 403)
    assert not upstream.holds(MARK)


def test_a_kept_answer_keeps_its_chain_inside(guarded, upstream) -> None:
    first = guarded.post("/v1/responses", {"model": "mixed", "input": f"{MARK} {CARD}"})
    assert first.status_code == 200, first.text
    then = guarded.post("/v1/responses", {
        "model": "mixed", "input": "go on", "previous_response_id": first.json()["id"],
    })  # fmt: skip
    assert then.status_code == 200, then.text
    left = guarded.post("/v1/responses", {
        "model": "careless", "input": "go on", "previous_response_id": first.json()["id"],
    })  # fmt: skip
    assert left.status_code == 403
    assert not upstream.holds(MARK)


OTHER_CARD = "5555 5555 5555 4444"
ITEMS = [
    {"role": "user", "content": "hello"},
    {"role": "user", "content": [{"type": "input_text", "text": f"{MARK} {CARD}"}]},
]  # fmt: skip


def ids_in(stream: str, prefix: str) -> set[str]:
    return set(re.findall(rf'"({prefix}[0-9a-z]+)"', stream))


@pytest.mark.parametrize("way", ["whole", "stream", "background", "conversation"])
def test_what_is_stored_is_what_may_be_sent(guarded, upstream, patiently, way) -> None:
    """Red before: the client's words were kept, and a further turn may be under no policy."""
    asked = {"model": "masked", "instructions": f"my card is {CARD}", "max_output_tokens": 5}
    more: dict[str, Any] = {"stream": {"stream": True}, "background": {"background": True}}.get(
        way, {}
    )
    if way == "conversation":
        more = {"conversation": guarded.post("/v1/conversations", {}).json()["id"]}
    first = guarded.post("/v1/responses", {**asked, **more, "input": ITEMS})
    assert first.status_code == 200, first.text
    (name,) = ids_in(first.text, "resp_")
    path = f"/v1/responses/{name}"
    kept = patiently(lambda: (found := guarded.get(path)).json()["status"] == "completed" and found)
    assert kept.json()["instructions"] == "my card is [card-1]"
    listed = guarded.get(f"{path}/input_items").text
    assert (MARK in listed, "[card-1]" in listed, CARD in listed) == (True, True, False)
    goes_on = more if way == "conversation" else {"previous_response_id": name}
    for model, card, sent in (
        ("careless", "", ["[card-1]"]), ("masked", OTHER_CARD, ["[card-1]", "[card-2]"]),
    ):  # fmt: skip
        upstream.received.clear()
        then = {"model": model, "input": f"go on {card}", "max_output_tokens": 5, **goes_on}
        assert guarded.post("/v1/responses", then).status_code == 200
        assert all(map(upstream.holds, (MARK, *sent)))
        assert not any(map(upstream.holds, (CARD, OTHER_CARD)))


@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_completion_has_the_messages_that_were_sent(guarded, stream) -> None:
    messages = [{"role": "user", "content": f"{MARK} {CARD}"}]
    for model in ("masked", "careless"):  # the second is the control
        answer = guarded.chat(model, messages=messages, max_tokens=5, store=True, stream=stream)
        (name,) = ids_in(answer.text, "chatcmpl-")
        told = guarded.get(f"/v1/chat/completions/{name}/messages").json()["data"]
        said = f"{MARK} {'[card-1]' if model == 'masked' else CARD}"
        assert [message["content"] for message in told] == [said]


def test_a_detector_that_fails_keeps_inside(guarded, upstream, monkeypatch) -> None:
    inspector = guarded.app.hot._dispatcher.inspector

    async def fails(_terms):
        raise RuntimeError("secret text")

    monkeypatch.setattr(inspector._readers, "reader", fails)
    answer = guarded.chat("outside", messages=[{"role": "user", "content": MARK}])
    assert answer.status_code == 403
    assert "unknown" in answer.text
    assert not upstream.holds(MARK)


class Guardrail(UpstreamServer):
    """Finds the word `person`; masks it if `masks`, and is slow or broken if it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = ""
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        parts = []
        while (message := await receive())["type"] == "http.request":
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        asked = json.loads(b"".join(parts))
        self.asked.append(asked)
        if self.mode == "slow":
            await receive()
            return
        count = sum(text.count("person") for text in asked["texts"])
        told: dict[str, Any] = {"found": {"person": count}} if count else {}
        if self.mode == "masks" and count:
            told["texts"] = [text.replace("person", "[x]") for text in asked["texts"]]
        if self.mode == "masks once" and count:
            told["texts"] = [asked["texts"][0].replace("person", "[x]"), *asked["texts"][1:]]
        status = 500 if self.mode == "broken" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})


@pytest.fixture(scope="module")
def guardrail():
    with Guardrail() as found:
        yield found


@pytest.fixture(scope="module")
def hooked(running, tmp_path_factory, upstream, guardrail):
    url = f"http://127.0.0.1:{guardrail.port}/check"

    def adjust(document, _ports):
        document["providers"]["a"] = {
            "base_url": upstream.url("a"), "prices_as": "openai/gpt-4o-mini",
        }  # fmt: skip
        document["providers"]["d"] = {  # so that Messages are also kept as they came
            **document["providers"]["a"], "base_url": upstream.url("d"), "kind": "anthropic",
        }  # fmt: skip
        document["models"] |= {
            name: {"targets": ["a/m"]} for name in ("near", "far", "masking", "after")
        }
        document["content"] = {"hooks": {
            "near": {"url": url, "address_residency": "internal_only", "timeout_ms": 300},
            "far": {"url": url, "timeout_ms": 300},
            "late": {"url": url, "stage": "after", "timeout_ms": 300},
        }}  # fmt: skip
        document["policies"] = [
            {"name": "near", "match": {"models": ["near"]}, "content": {"near": "keep_inside"}},
            {"name": "far", "match": {"models": ["far"]},
             "content": {"far": "refuse", "card": "keep_inside"}},
            {"name": "masking", "match": {"models": ["masking"]}, "content": {"near": "mask"}},
            {"name": "after", "match": {"models": ["after"]},
             "content": {"late": "refuse", "unknown": "record"}},
        ]  # fmt: skip

    with running(tmp_path_factory.mktemp("hooked"), adjust=adjust) as stack:
        yield stack


@pytest.fixture
def ask_hooked(hooked, upstream, guardrail):
    def ask(model: str, words: str, mode: str = "", **members: Any) -> Any:
        upstream.says, upstream.received = {}, []
        guardrail.mode, guardrail.asked = mode, []
        messages = [{"role": "user", "content": f"{MARK} {words}"}]
        return hooked.chat(model, messages=messages, max_tokens=5, **members)

    return ask


def test_a_guardrail_that_finds_or_fails_keeps_inside(ask_hooked, upstream, guardrail) -> None:
    assert ask_hooked("near", "hello").status_code == 200
    assert upstream.holds(MARK), "the control leaves"
    assert any(MARK in text for text in guardrail.asked[0]["texts"])
    for words, mode in (("a person", ""), ("hello", "slow"), ("hello", "broken")):
        answer = ask_hooked("near", words, mode)
        assert answer.status_code == 403, (mode, answer.text)
        assert not upstream.holds(MARK)


def test_a_guardrail_outside_gets_nothing_that_must_stay(ask_hooked, guardrail, upstream) -> None:
    assert ask_hooked("far", "hello").status_code == 200
    assert len(guardrail.asked) == 1
    assert ask_hooked("far", f"hello {CARD}").status_code == 403
    assert guardrail.asked == []
    assert ask_hooked("far", "a person").status_code == 400
    assert not upstream.holds(MARK)


def test_what_a_guardrail_rewrites_is_sent(ask_hooked, upstream, hooked) -> None:
    answer = ask_hooked("masking", "a person and a person", "masks")
    assert answer.status_code == 200, answer.text
    assert upstream.holds("a [x] and a [x]")
    assert not upstream.holds("person")
    (row,) = hooked.settled(answer)
    assert row["content"] == "near=2; mask"


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_guardrail_rewrites_is_stored(hooked, guardrail, stream) -> None:
    guardrail.mode = "masks"
    items = [{"role": "user", "content": [{"type": "input_text", "text": "a person"}]}]
    asked = {"model": "masking", "input": items, "instructions": "for a person"}
    answer = hooked.post("/v1/responses", {**asked, "stream": stream, "max_output_tokens": 5})
    (name,) = ids_in(answer.text, "resp_")
    kept = hooked.get(f"/v1/responses/{name}")
    assert kept.json()["instructions"] == "for a [x]"
    listed = hooked.get(f"/v1/responses/{name}/input_items").text
    assert ("a [x]" in listed, "person" in listed) == (True, False)


MESSAGES_BODIES: dict[str, dict[str, Any]] = {
    "plain": {"system": "a person", "messages": [{"role": "user", "content": "a person"}]},
    "blocks": {
        "system": [{"type": "text", "text": "a person"}, {"type": "text", "text": "is"}],
        "messages": [{"role": "user", "content": "hi"}],
    },
    "instruction": {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "system", "content": [
                {"type": "text", "text": "a person"}, {"type": "text", "text": "is"},
            ]},
        ],
    },
    "document": {
        "messages": [{"role": "user", "content": [
            {"type": "document", "title": "a person", "source": {
                "type": "text", "media_type": "text/plain", "data": "is a person"}},
        ]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("body", MESSAGES_BODIES.values(), ids=MESSAGES_BODIES)
def test_what_a_guardrail_rewrites_is_sent_in_another_dialect(
    hooked, upstream, guardrail, body
) -> None:
    """Its words may be put together there: nothing that it took out may leave in that form."""
    upstream.says, upstream.received = {}, []
    guardrail.mode, guardrail.asked = "masks", []
    answer = hooked.post("/v1/messages", {"model": "masking", "max_tokens": 5, **body})
    assert any("person" in text for asked in guardrail.asked for text in asked["texts"])
    assert answer.status_code == 200, answer.text
    assert upstream.holds("a [x]")
    assert not upstream.holds("person")


def test_what_is_rewritten_in_one_of_two_equal_places_stays_inside(
    hooked, upstream, guardrail
) -> None:
    """Texts are told apart by what they say: its mask was lost, and the text left as it was."""
    upstream.says, upstream.received = {}, []
    guardrail.mode, guardrail.asked = "masks once", []
    messages = [{"role": "user", "content": "a person"}, {"role": "user", "content": "a person"}]
    answer = hooked.chat("masking", messages=messages, max_tokens=5)
    assert answer.status_code == 403, answer.text
    assert not upstream.holds("person")


@pytest.mark.parametrize("stream", [False, True])
def test_a_guardrail_withholds_answers_that_it_cannot_judge(ask_hooked, guardrail, stream) -> None:
    whole = ask_hooked("after", "hello", stream=stream)
    assert whole.status_code == 200
    assert "hello" in whole.text
    assert guardrail.asked[0]["stage"] == "after"
    for mode in ("slow", "broken"):
        answer = ask_hooked("after", "hello", mode, stream=stream)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "content_refused"


def stored_answers(stack) -> int:
    """Answers in any of the databases of a host."""
    found = 0
    for path in stack.state.rglob("*.sqlite3"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            query = "SELECT count(*) FROM sqlite_master WHERE name = 'stored_objects'"
            if database.execute(query).fetchone()[0]:
                found += database.execute("SELECT count(*) FROM stored_objects").fetchone()[0]
    return found


def test_a_withheld_answer_is_not_stored(ask_hooked, hooked, guardrail) -> None:
    """The control is stored: no guardrail reads its answer."""
    guardrail.mode = ""
    before = stored_answers(hooked)
    assert hooked.post("/v1/responses", {"model": "near", "input": "hello"}).status_code == 200
    kept = stored_answers(hooked)
    assert kept > before
    guardrail.mode = "broken"
    answer = hooked.post("/v1/responses", {"model": "after", "input": "hello"})
    assert answer.status_code == 400, answer.text
    assert stored_answers(hooked) == kept


@pytest.mark.parametrize("stream", [False, True])
def test_a_background_answer_that_may_not_be_stored_fails_and_asks_nobody(
    hooked, upstream, guardrail, stream
) -> None:
    """It was made and paid, and its row said `queued` until the lease ended."""
    guardrail.mode, upstream.says, upstream.received = "", {}, []
    asked = {"model": "after", "input": MARK, "background": True, "stream": stream}
    answer = hooked.post("/v1/responses", asked)
    found: dict[str, Any] = {"status": "queued"}
    if not stream:
        assert answer.status_code == 200, answer.text
        for _ in range(100):
            found = hooked.get(f"/v1/responses/{answer.json()['id']}").json()
            if found["status"] not in ("queued", "in_progress"):
                break
            time.sleep(0.05)
        assert found["status"] == "failed"
        assert "`background`" in found["error"]["message"]
    else:
        assert answer.status_code == 400, answer.text
        assert "`background`" in answer.text
    assert not upstream.holds(MARK)
