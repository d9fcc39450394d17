"""One table from kind to HTTP, one body with all four members."""

import gc
import json
import weakref

import pytest

from gateway.errors import TABLE, ErrorFault, RequestError, body, drop_traceback, fault_header


class HeldFrame:
    """Something in the frame of who raises."""


def raised() -> tuple[RequestError, weakref.ref]:
    held = HeldFrame()

    def raising() -> None:
        inner, kept = ValueError("first"), held
        raise inner from KeyError(weakref.ref(kept))

    def refusing() -> None:
        refusal = RequestError("upstream", "No.")
        try:
            raising()
        except ValueError as error:
            raise refusal from error

    try:
        refusing()
    except RequestError as error:
        return error, weakref.ref(held)
    raise AssertionError


@pytest.mark.parametrize("freed", [True, False])
def test_an_answered_error_keeps_nothing_that_raised_it(freed) -> None:
    """Not freed: only the collector finds it, which is the control."""
    gc.collect()
    gc.disable()
    try:
        error, held = raised()
        if freed:
            drop_traceback(error)
        del error
        assert (held() is None) == freed
        gc.collect()
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_every_kind_has_an_openai_body(kind: str) -> None:
    error = RequestError(kind, "Do this instead.", param="model")
    document = json.loads(body(error))
    assert document == {
        "error": {
            "message": "Do this instead.",
            "type": TABLE[kind].type,
            "param": "model",
            "code": TABLE[kind].code,
        }
    }
    assert 400 <= error.row.status <= 599


def test_each_error_says_where_its_cause_lies() -> None:
    """A status of 5xx is never the request's fault, one of a wrong request never the gateway's."""
    for kind, row in TABLE.items():
        own = row.fault in (ErrorFault.REQUEST, ErrorFault.KEY)
        assert not (own and row.status >= 500), kind
        assert own or row.status >= 429 or kind == "not_onward", kind
        assert fault_header(row.fault) == (b"x-breakeven-fault", row.fault.value.encode())
    assert RequestError("overloaded", "No.").fault is ErrorFault.CAPACITY
    assert RequestError("overloaded", "No.", backend="openai/m").fault is ErrorFault.UPSTREAM
    assert RequestError("context", "No.", backend="openai/m").fault is ErrorFault.REQUEST
    assert {RequestError(kind, "").fault for kind in TABLE} == set(ErrorFault)


def test_a_client_reads_the_cause_in_every_dialect(stack) -> None:
    poor = {"model": "own", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    for path, asked in (
        ("/v1/chat/completions", {**poor, "n": -1}),
        ("/v1/messages", {**poor, "max_tokens": -1}),
        ("/v1/responses", {"model": "own", "input": 5}),
        ("/v1/nothing", {}),
        ("/v1/audio/speech", {}),
    ):
        answer = stack.post(path, asked)
        assert answer.headers["x-breakeven-fault"] == "request", path
    unknown = stack.client.post(stack.url + "/v1/chat/completions", json=poor)
    assert unknown.headers["x-breakeven-fault"] == "key"
    stack.fault("alpha", fault="status", status=500, times=5)
    failed = stack.chat("api", max_tokens=2)
    stack.forgive("alpha")
    assert (failed.status_code, failed.headers["x-breakeven-fault"]) == (502, "upstream")
    stack.fault("alpha", fault="status", status=422, times=5)
    refused = stack.chat("api", max_tokens=2)
    stack.forgive("alpha")
    assert (refused.status_code, refused.headers["x-breakeven-fault"]) == (422, "request")
