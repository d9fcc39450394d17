"""What a worker says of a line that could go to a provider's batch; through its entrance."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from backends.provider_table import LISTED
from gateway.batches.authority import LineTicket, load_authority
from gateway.batches.line_endpoint import PREFIX
from gateway.batches.provider_line_planner import ProviderLine

BODY = {"max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]}


def batching(found: dict[str, Any], _: dict[str, int]) -> None:
    """`beta` costs more than `alpha`, and `late` takes no batches."""
    for name in ("alpha", "beta"):
        found["providers"][name]["batch"] = True
    found["providers"]["alpha"] |= {"extra_body": {"safe_prompt": True}, "tier": "flex"}
    at_home = {"name": "home", "match": {"models": ["own"]}, "residency": "internal_only"}
    found["models"]["read"] = found["models"]["api"]
    late = {"url": "http://127.0.0.1:9/", "stage": "after", "address_residency": "internal_only"}
    found["content"] = {"hooks": {"late": late}}
    read = {"name": "read", "match": {"models": ["read"]}, "content": {"late": "refuse"}}
    found["policies"] = [at_home, read, *found["policies"]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, running: Callable[..., Any]) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("handing"), adjust=batching) as this_running:
        yield this_running


@pytest.fixture
def ask(stack: Any) -> Callable[..., Any]:
    def asked(model: str, **members: Any) -> Any:
        ticket = LineTicket(
            key_id=stack.key("owner", team="owners").key_id, batch_id="batch_h",
            request_id=f"batch_h-1-{time.monotonic_ns()}",
            expires_us=time.time_ns() // 1000 + 10**7, onward=True,
        )  # fmt: skip
        token = load_authority(stack.runtime.run_dir).sign(ticket)
        url = f"{stack.url}{PREFIX}/v1/chat/completions"
        headers = {"authorization": f"Bearer {token}"}
        return stack.client.post(url, json={"model": model, **BODY, **members}, headers=headers)

    return asked


def test_the_plan_is_told_and_nobody_is_asked(stack, ask) -> None:
    served = len(stack.entries("alpha"))
    answer = ask("pair", service_tier="flex", user="someone", rid="x")
    assert answer.status_code == 200, answer.text
    handed = msgspec.msgpack.decode(answer.content, type=ProviderLine)
    assert (handed.provider, handed.upstream_model) == ("alpha", "m"), "the cheaper of the two"
    body = msgspec.json.decode(handed.body)
    assert (body["model"], body["max_tokens"], body["user"]) == ("m", 20, "someone")
    assert "service_tier" not in body, "a batch is a tier of its own"
    assert handed.terms.ignored == "rid, service_tier"
    opened = handed.opened
    assert (opened.attempt_id, opened.team_id) == (f"{opened.request_id}.1", "owners")
    assert dict(opened.tags)["batch"] == "batch_h"
    assert opened.holds == ()
    assert (handed.terms.most, handed.terms.told) == (20, True)
    assert opened.bound_pusd == handed.terms.prompt_bound * 75_000 + 20 * 300_000
    assert {"team:owners", "provider:alpha"} <= set(handed.scopes)
    assert len(stack.entries("alpha")) == served
    assert stack.rows("request_id = :id", id=opened.request_id) == []


@pytest.mark.parametrize("asked", [{}, {"service_tier": None}, {"service_tier": "batch"}])
def test_a_provider_that_asks_for_a_tier_asks_for_none_in_its_batch(ask, asked) -> None:
    """Red before: its own tier was in each line of its batch."""
    handed = msgspec.msgpack.decode(ask("pair", **asked).content, type=ProviderLine)
    assert "service_tier" not in msgspec.json.decode(handed.body)
    assert handed.terms.ignored == ""


def test_a_line_has_the_words_that_its_provider_reads(stack, ask, monkeypatch) -> None:
    """Red before: a limit under a name that is not known there is none, and was held for."""
    limit = {"max_tokens": None, "max_completion_tokens": 9, "user": "someone"}

    def sent() -> tuple[dict[str, Any], str]:
        handed = msgspec.msgpack.decode(ask("api", **limit).content, type=ProviderLine)
        assert (handed.terms.most, handed.terms.told) == (9, True)
        body: dict[str, Any] = msgspec.json.decode(handed.body)
        return body, handed.terms.ignored

    body, _ = sent()
    assert ("max_tokens" in body, body["safe_prompt"]) == (False, True)
    backend = stack.planner._routes._fleet._api_backends["alpha"]
    monkeypatch.setattr(backend, "_quirks", LISTED["groq"].quirks)
    body, ignored = sent()
    assert (body["max_tokens"], ignored) == (9, "user")
    assert body.keys().isdisjoint({"max_completion_tokens", "user"})


def test_an_answer_that_a_guardrail_reads_comes_from_no_batch(ask) -> None:
    """It would come by a file that no guardrail reads; the guardrail was given the plan."""
    refused = ask("read")
    assert refused.json()["error"]["code"] == ask("own").json()["error"]["code"]
    assert "a guardrail reads its answer" in refused.json()["error"]["message"]


def test_own_engines_are_named_as_too_late(ask) -> None:
    handed = msgspec.msgpack.decode(ask("chat").content, type=ProviderLine)
    assert (handed.provider, handed.opened.spill_reason) == ("alpha", "batch")


@pytest.mark.parametrize("model", ["own", "late", "embed"])
def test_what_no_providers_batch_takes(ask, model: str) -> None:
    answer = ask(model)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_onward")


def test_what_would_be_refused_anywhere_is(ask) -> None:
    assert ask("nobody").status_code == 404
    assert ask("pair", messages=[]).status_code == 400
