"""What a target says of its account with us stays here; when to come back is the gateway's to say.

A provider's rate limits, cookies and organisation are ours, not the client's: nothing of them may
leave, on any path. The gateway has no rate limits of its own to tell, so it tells none.
"""

import json

import pytest

from gateway.request import response_writer

OURS = (
    b"x-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 499\r\n"
    b"x-ratelimit-reset-requests: 120ms\r\nx-ratelimit-remaining-tokens: 9000\r\n"
    b"anthropic-ratelimit-requests-limit: 50\r\nopenai-organization: acme-secret\r\n"
    b"openai-processing-ms: 12\r\nset-cookie: __cf=secret\r\nretry-after: 7\r\n"
    b"x-should-retry: true\r\nx-request-id: theirs\r\nserver: theirs\r\n"
)
ASKED = {"max_tokens": 20}
ERROR = b'{"error":{"message":"no","type":"t","param":null,"code":null}}'
BODY = (
    b'{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":7,"completion_tokens":1}}'
)
PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
}
TOLD = ("x-ratelimit", "anthropic-ratelimit", "openai-", "set-cookie", "server")
STATUSES = (400, 401, 402, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d Said\r\n" % status + OURS


def leaked(answer) -> list[str]:
    """Names of headers that a target said and a client must not see."""
    found = [name for name in answer.headers if name.startswith(TOLD)]
    found += [name for name, value in answer.headers.items() if "theirs" in value]
    return found + [word for word in ("acme-secret", "__cf") if word in answer.text]


def ask(faulty, model, path, rule, **members):
    faulty.proxy(model).rule = rule
    faulty.forget()
    return faulty.stack.post(path, {"model": model, **ASKED, **PATHS[path], **members})


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize("path", PATHS)
def test_a_targets_account_is_never_told(faulty, rule, answers, path, model) -> None:
    whole = answers.whole(BODY, status_line(200))
    stream = answers.stream().replace(b"HTTP/1.1 200 OK\r\n", status_line(200))
    cut = rule(answer=stream, before=b"data: [DONE]", ending="reset")
    assert leaked(ask(faulty, model, path, rule(answer=whole))) == []
    for item in (rule(answer=stream), cut):
        streamed = ask(faulty, model, path, item, stream=True)
        assert (streamed.status_code, leaked(streamed)) == (200, [])
    for status in STATUSES:
        answer = ask(faulty, model, path, rule(answer=answers.whole(ERROR, status_line(status))))
        assert answer.status_code >= 400
        assert leaked(answer) == [], status
        assert answer.headers["x-request-id"].startswith("req_")
        told = answer.headers.get("x-should-retry")
        assert told in (None, "false"), status


def test_without_headers_of_our_own_making_it_would_be(faulty, rule, answers, monkeypatch) -> None:
    """The negative control: who hands on what the target said."""
    usual = response_writer._headers

    def handed_on(attempt, *first):
        pairs = [line.split(b": ") for line in OURS.strip().split(b"\r\n")]
        return [*usual(attempt, *first), *((name, value) for name, value in pairs)]

    monkeypatch.setattr(response_writer, "_headers", handed_on)
    whole = rule(answer=answers.whole(BODY, status_line(200)))
    found = leaked(ask(faulty, "api", "/v1/chat/completions", whole))
    assert {"x-ratelimit-limit-requests", "set-cookie", "server"} <= set(found)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("seconds", [7, 30])
def test_when_to_come_back_is_heard_and_said(faulty, rule, answers, status, seconds) -> None:
    """The target's word, for the client that asked and for who asks within it: asked once."""
    said = b"HTTP/1.1 %d Full\r\nretry-after: %d\r\n" % (status, seconds)
    faulty.alpha.rule = rule(answer=answers.whole(ERROR, said))
    faulty.forget()
    first = faulty.stack.chat("api", **ASKED)
    asked = len(faulty.alpha.seen)
    later = [faulty.stack.chat("api", **ASKED) for _ in range(3)]
    assert len(faulty.alpha.seen) == asked, "who was told to wait, waits"
    for answer in (first, *later):
        assert answer.status_code in (429, 503)
        assert seconds - 2 <= int(answer.headers["retry-after"]) <= seconds
        assert "x-should-retry" not in answer.headers, "a wait helps"


def test_without_a_word_nobody_waits(faulty, rule, answers) -> None:
    """The negative control: the same refusals without `retry-after` are asked for each time."""
    faulty.alpha.rule = rule(answer=answers.whole(ERROR, b"HTTP/1.1 429 Full\r\n"))
    faulty.forget()
    before = len(faulty.alpha.seen)
    for _ in range(3):
        faulty.stack.chat("api", **ASKED)
    assert len(faulty.alpha.seen) == before + 3


@pytest.fixture(scope="module")
def poor(faulty_with):
    budgets = [{"scope": "team:poor", "usd": 0.000001, "period": "month", "hard": True}]
    return faulty_with(budgets=budgets).stack


@pytest.mark.parametrize("path", PATHS)
def test_a_spent_budget_is_asked_once_and_a_full_house_again(poor, monkeypatch, path) -> None:
    """`x-should-retry: false` where no wait helps; none where one does."""
    body = {"model": "api", **ASKED, **PATHS[path]}
    spent = poor.post(path, body, poor.key("poor", team="poor").token)
    assert spent.status_code == 429, spent.text
    assert spent.headers["x-should-retry"] == "false"
    assert "retry-after" not in spent.headers, "the window may be a month"
    assert "budget" in json.dumps(spent.json()).lower()
    none = poor.app.hot._server.model_copy(update={"max_in_flight": 0})
    monkeypatch.setattr(poor.app.hot, "_server", none)
    full = poor.post(path, body)
    assert (full.status_code, full.headers["retry-after"]) == (503, "1")
    assert "x-should-retry" not in full.headers
    assert leaked(spent) == leaked(full) == []
