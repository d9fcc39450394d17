"""One table from kind to HTTP, one body with all four members."""

import gc
import json
import weakref

import pytest

from gateway.errors import TABLE, RequestError, body, drop_traceback


class Held:
    """Something in the frame of who raises."""


def raised() -> tuple[RequestError, weakref.ref]:
    held = Held()

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
