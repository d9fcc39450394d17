"""Messages and Responses on a real engine: vLLM's own answers in these dialects are the oracle.

The same request goes to vLLM's own paths and to the gateway's, which has it answered as chat. What
both say of text, ending and usage agrees; what the gateway says is what the ledger has.
"""

import json

import httpx
import pytest

APPLIED_LIMIT_S = 120
TURN = {"role": "user", "content": "Name a machine."}
ASKED = {
    "/messages": {"messages": [TURN], "system": "Be brief.", "max_tokens": 12},
    "/responses": {"input": [TURN], "instructions": "Be brief.", "max_output_tokens": 12},
}
GREEDY = {"model": "tiny", "temperature": 0.0}


def ask(base_url: str, path: str, key: str = "none", **members: object) -> httpx.Response:
    body = {**GREEDY, **ASKED[path], **members}
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(base_url + path, json=body, headers=headers, timeout=120, trust_env=False)


def events(answer: httpx.Response) -> list[dict]:
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def said(path: str, document: dict) -> dict:
    """What can be compared of a whole answer."""
    usage = document["usage"]
    if path == "/messages":
        text = "".join(block["text"] for block in document["content"])
        end, cached = document["stop_reason"], usage.get("cache_read_input_tokens") or 0
        given = usage["input_tokens"] + cached
    else:
        parts = [part for item in document["output"] for part in item["content"]]
        text = "".join(part["text"] for part in parts)
        end, given = document["incomplete_details"], usage["input_tokens"]
    return {"text": text, "end": end, "input": given, "output": usage["output_tokens"]}


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_is_the_one_that_vllm_gives_in_this_dialect(
    tiny_gateway, tiny_engine, path
) -> None:
    native = ask(tiny_engine.base_url, path)
    assert native.status_code == 200, native.text
    answer = ask(tiny_gateway.base_url, path, tiny_gateway.key())
    assert answer.status_code == 200, answer.text
    found = said(path, answer.json())
    assert found == said(path, native.json())
    assert 0 < found["output"] <= 12
    assert found["text"]
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    name = answer.headers["x-request-id"]
    (row,) = tiny_gateway.until(lambda: tiny_gateway.rows(query, id=name), APPLIED_LIMIT_S)
    assert (row["basis"], row["output_tokens"]) == ("reported", found["output"])
    assert row["input_tokens"] + row["cached_tokens"] == found["input"]


@pytest.mark.parametrize("path", ASKED)
def test_a_stream_has_the_events_that_vllm_gives_in_this_dialect(
    tiny_gateway, tiny_engine, path
) -> None:
    native = events(ask(tiny_engine.base_url, path, stream=True))
    mine = events(ask(tiny_gateway.base_url, path, tiny_gateway.key(), stream=True))

    def told(found: list[dict]) -> tuple[list[str], str]:
        """The kinds in their order, each once in a row, and the text of all deltas."""
        kinds = [event["type"] for event in found]
        deltas = [event["delta"] for event in found if "delta" in event]
        texts = [delta if isinstance(delta, str) else delta.get("text", "") for delta in deltas]
        return [k for k, before in zip(kinds, ["", *kinds], strict=False) if k != before], "".join(
            texts
        )

    assert told(mine) == told(native)
