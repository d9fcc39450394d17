"""Silence in every dialect: a client hears that its stream goes on, and a failure behind that."""

import json

import pytest

from gateway.request import client_response, inference_api

PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "/v1/responses": {"input": "hi", "max_output_tokens": 16},
}
PINGS = dict.fromkeys(PATHS, ": keep-alive") | {"/v1/messages": "event: ping"}
LASTS = {
    "/v1/chat/completions": "[DONE]",
    "/v1/messages": "message_stop",
    "/v1/responses": "response.incomplete",
}
FAILURES = {
    "/v1/chat/completions": '"error"',
    "/v1/messages": "event: error",
    "/v1/responses": "response.failed",
}
SHORT = {"timeouts": {"head_s": 0.6, "idle_s": 0.6, "drain_s": 1}}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client_response, "KEEP_ALIVE_S", 0.1)
    monkeypatch.setattr(inference_api, "LATE_CHECK_S", 0.03)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), server=SHORT) as stack:
        yield stack


def lines_of(stack, path: str, model: str):
    """The lines of a stream that has begun."""
    body = {"model": model, "stream": True, **PATHS[path]}
    with stack.client.stream("POST", stack.url + path, json=body, headers=stack.headers()) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield from reply.iter_lines()


@pytest.mark.parametrize("path", PATHS)
def test_a_target_that_thinks_long_is_no_silence(stack, path: str) -> None:
    lines = lines_of(stack, path, "late")  # 30 s until its first token
    assert [next(lines), next(lines), next(lines)][0] == PINGS[path]
    lines.close()


@pytest.mark.parametrize("path", PATHS)
def test_silence_in_mid_answer_is_none_either(stack, path: str) -> None:
    stack.fault("alpha", fault="stall", after_tokens=2)
    lines = lines_of(stack, path, "api")
    seen = [next(line for line in lines if line.startswith("data: {"))]
    for line in lines:
        seen.append(line)
        if line == PINGS[path]:
            break
    lines.close()
    stack.forgive("alpha")
    assert seen[-1] == PINGS[path]


@pytest.mark.parametrize("path", PATHS)
def test_another_target_answers_behind_a_sign_of_life(impatient, path: str) -> None:
    impatient.fault("alpha", fault="stall", after_tokens=0)
    lines = list(lines_of(impatient, path, "pair"))
    impatient.forgive("alpha")
    assert lines[0] == PINGS[path]
    assert any(LASTS[path] in line for line in lines)
    assert not any(FAILURES[path] in line for line in lines)


@pytest.mark.parametrize("path", PATHS)
def test_a_failure_behind_a_sign_of_life_is_told_in_the_stream(impatient, path: str) -> None:
    lines = list(lines_of(impatient, path, "late"))
    assert lines[0] == PINGS[path]
    assert any(FAILURES[path] in line for line in lines)
    assert not any(LASTS[path] in line for line in lines)


def test_a_whole_answer_gets_no_sign(stack) -> None:
    stack.fault("alpha", fault="status", status=503)
    answer = stack.post("/v1/responses", {"model": "api", "input": "hi", "max_output_tokens": 16})
    stack.forgive("alpha")
    json.loads(answer.text)
