"""Bodies and answers of the first leg; all of it is in `tests/gateway/faults/test_roles.py`."""

import json
from types import SimpleNamespace

import pytest

from backends.errors import InvalidResponse
from gateway.request.prompt_reader import (
    PromptReader,
    freeing_body,
    one_token,
    prompt_body,
    transfer_params,
    with_params,
    without_params,
)
from router.types import PrefillForecast

BODY = {
    "model": "llama", "messages": [{"role": "user", "content": "hi"}], "stream": True,
    "stream_options": {"include_usage": True}, "max_completion_tokens": 90, "min_tokens": 5,
    "cache_salt": "salt", "temperature": 0.1,
}  # fmt: skip
PARAMS = {"do_remote_prefill": True, "remote_host": "10.0.0.5", "remote_port": 5600}


def test_the_engine_that_reads_gets_one_token_and_the_same_salt() -> None:
    told = json.loads(prompt_body(json.dumps(BODY).encode()))
    assert (told["max_tokens"], told["stream"], told["cache_salt"]) == (1, False, "salt")
    assert told["messages"] == BODY["messages"]
    assert not {"stream_options", "max_completion_tokens", "min_tokens"} & set(told)
    params = told["kv_transfer_params"]
    assert (params["do_remote_decode"], params["do_remote_prefill"]) == (True, False)


def test_the_engine_that_answers_gets_the_request_and_where_its_kv_is() -> None:
    body = json.dumps(BODY).encode()
    assert json.loads(with_params(body, PARAMS)) == {**BODY, "kv_transfer_params": PARAMS}
    freeing = json.loads(with_params(one_token(body), PARAMS))
    assert (freeing["max_tokens"], freeing["kv_transfer_params"]) == (1, PARAMS)


def test_what_only_fetches_is_no_prefix_of_anybody() -> None:
    """Freed blocks may hold another KV by then, which would be cached as this prompt's."""
    body = json.dumps(BODY).encode()
    made = [json.loads(freeing_body(body, PARAMS)) for _ in range(2)]
    salts = {told.pop("cache_salt") for told in made}
    assert len(salts) == 2
    assert "salt" not in salts
    assert (
        made[0]
        == made[1]
        == {
            key: value
            for key, value in json.loads(with_params(one_token(body), PARAMS)).items()
            if key != "cache_salt"
        }
    )


def test_what_the_answering_engine_needs_is_the_rest_of_the_forecast() -> None:
    forecast = PrefillForecast("pool:a/0", 60.0, 0.1, 0.05, 512, 0.03, 0.1, 0.0)
    reader = SimpleNamespace(name="pool:a/0", row=0)
    verdict = SimpleNamespace(
        prefill=forecast, ttft_ms=130.0,
        candidate=SimpleNamespace(prefillers=[SimpleNamespace(name="pool:a/0", engine=None)]),
    )  # fmt: skip
    step = SimpleNamespace(
        verdict=verdict, frozen=SimpleNamespace(target=SimpleNamespace(partners=[reader]))
    )
    flights = SimpleNamespace(reserve_prompt=lambda *given: None)
    leg = PromptReader(flights, None, None, set()).reserve(None, step, 1.0)
    assert leg.answer_s == pytest.approx(0.04)  # 130 ms less 60 of reading and 30 of the transfer


def test_what_a_client_says_of_kv_goes_nowhere() -> None:
    """It would have an engine keep KV, or connect to any address."""
    mine = json.dumps({**BODY, "kv_transfer_params": {"remote_host": "8.8.8.8"}}).encode()
    assert json.loads(without_params(mine)) == BODY
    plain = json.dumps(BODY).encode()
    assert without_params(plain) is plain


def test_an_answer_says_where_the_kv_is() -> None:
    body = {"kv_transfer_params": PARAMS, "usage": {"prompt_tokens": 12}, "choices": []}
    assert transfer_params(json.dumps(body).encode()) == (PARAMS, 12)
    assert transfer_params(json.dumps({**body, "usage": None}).encode()) == (PARAMS, None)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"kv_transfer_params": null}', b'{"kv_transfer_params": {}}',
     b'{"kv_transfer_params": {"remote_host": "8.8.8.8"}}',
     b'{"kv_transfer_params": {"remote_host": "evil.example.com"}}',
     b'{"kv_transfer_params": {"remote_host": ["10.0.0.5"]}}',
     b'{"kv_transfer_params": {"remote_host": null}}', b'{"kv_transfer_params": 7}', b"\xff"],
)  # fmt: skip
def test_an_answer_that_leads_nowhere_or_outside_is_none(body) -> None:
    with pytest.raises(InvalidResponse):
        transfer_params(body)
