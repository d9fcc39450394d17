"""The seam: every shipped backend fits it, and a call's defaults bound every wait."""

import dataclasses
import inspect

import pytest

from backends.base import Backend, Call, Deadlines, Exchange
from backends.http_connection import HttpExchange
from backends.litellm import LiteLLMBackend
from backends.openai import OpenAIBackend


def methods(protocol: type) -> set[str]:
    names = {name for name, value in vars(protocol).items() if inspect.isfunction(value)}
    return names - {"__annotate_func__", "__init__", "__subclasshook__"}


@pytest.mark.parametrize("kind", [OpenAIBackend, LiteLLMBackend])
def test_shipped_backends_have_the_methods_with_the_same_parameters(kind):
    assert methods(Backend) == {"open", "aclose"}
    for name in methods(Backend):
        wanted = inspect.signature(getattr(Backend, name)).parameters
        assert list(inspect.signature(getattr(kind, name)).parameters) == list(wanted)
        assert inspect.iscoroutinefunction(getattr(kind, name))


def test_an_exchange_has_the_methods():
    assert methods(Exchange) == {"__aiter__", "aclose"}
    assert all(hasattr(HttpExchange, name) for name in methods(Exchange))


def test_no_wait_is_unbounded_by_default():
    given = Call("/chat/completions", b"{}", stream=True).deadlines
    waits = dataclasses.asdict(given)
    assert waits.keys() == {"connect_s", "head_s", "idle_s"}
    assert all(seconds > 0 for seconds in waits.values())
    assert given == Deadlines()


def test_a_call_cannot_be_changed_on_its_way():
    call = Call("/chat/completions", b"{}", stream=False)
    with pytest.raises(AttributeError, match="immutable"):
        call.body = b"other"
