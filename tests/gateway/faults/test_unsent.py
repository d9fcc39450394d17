"""What ends before a byte has left for the target is free, whoever ended it."""

import asyncio
import json

import pytest

from backends.http import _Pool

ASKED = {"model": "api", "max_tokens": 500, "messages": [{"role": "user", "content": "hi"}]}

PROMPT = {"model": "api", "max_tokens": 500, "prompt": "hi"}


class NoMatch:
    def fullmatch(self, _: str) -> None:
        return None


async def fails(*_: object, **__: object) -> None:
    raise RuntimeError("a defect of ours")


def the_row(faulty, since: int):
    """Of the one attempt behind `since`, and what it is booked at."""
    (row,) = faulty.all_settled(since, 1)
    return row, (row["input_tokens"], row["output_tokens"], row["cost_pusd"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sent", [False, True])
def test_a_client_that_leaves_owes_what_was_sent(
    faulty, rule, monkeypatch, patiently, stream, sent
) -> None:
    """`sent` is the control: the answer in one piece is booked at its limit, as ever."""
    since = faulty.last_row()
    faulty.forget()
    faulty.alpha.rule = rule(answer=b"", after_bytes=10**6)
    before = len(faulty.alpha.seen)

    async def wait(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    if not sent:
        monkeypatch.setattr(_Pool, "acquire", wait)
    with faulty.stack.raw({**ASKED, "stream": stream}) as client:
        client.settimeout(20)
        if sent:
            patiently(lambda: len(faulty.alpha.seen) > before)
        else:  # probes wait, too: that its row is open tells that it is the request
            patiently(lambda: faulty.stack.rows("seq > :since", since=since))
    row, booked = the_row(faulty, since)
    assert row["status"] == "client_gone"
    if sent:
        assert booked[0] > 0 < booked[2]
    else:
        assert booked == (0, 0, 0)


@pytest.mark.parametrize("where", ["building", "connecting"])
def test_a_defect_before_anything_left_is_free(faulty, monkeypatch, where) -> None:
    since = faulty.last_row()
    faulty.forget()
    if where == "building":
        monkeypatch.setattr("gateway.request.request_parser.body_for", None)
    else:
        monkeypatch.setattr(_Pool, "acquire", fails)
    told = faulty.stack.post("/v1/chat/completions", ASKED)
    assert told.status_code == 500
    row, booked = the_row(faulty, since)
    assert (row["status"], booked) == ("upstream_error", (0, 0, 0))


def test_a_path_that_no_head_takes_is_free_and_told(faulty, monkeypatch) -> None:
    """What the adapter cannot make a request of: HTTP 502, and no fee."""
    since = faulty.last_row()
    faulty.forget()
    monkeypatch.setattr("backends.openai._SAFE_PATH", NoMatch())
    told = faulty.stack.post("/v1/completions", PROMPT)
    assert told.status_code == 502
    assert "could not be sent" in json.dumps(told.json())
    row, booked = the_row(faulty, since)
    assert (row["error"], booked) == ("unsendable", (0, 0, 0))
