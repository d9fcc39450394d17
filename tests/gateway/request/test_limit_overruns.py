"""What an answer beyond its limit teaches: that thoughts are billed beside it, or another name."""

from types import SimpleNamespace

import msgspec
import pytest

from backends.openai import OpenAIBackend
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.limit_overruns import LimitOverrun, names_newer_alone, overrun_of
from ledger.journals.records import TokenCounts
from router.request_kinds import RequestKind
from router.target_output import OVERRUN_LIMIT


def attempt(*, n: int = 1, limit: int = 100, allowance: int = 0, kind=RequestKind.CHAT):
    request = SimpleNamespace(kind=kind, n=n)
    candidate = SimpleNamespace(output_cap=limit)
    frozen = SimpleNamespace(candidate=candidate, allowance_tokens=allowance, open_end=None)
    return SimpleNamespace(
        plan=SimpleNamespace(request=request), step=SimpleNamespace(frozen=frozen)
    )


@pytest.mark.parametrize(
    ("changes", "output", "reasoning", "found"),
    [
        ({}, 100, 0, None),
        ({}, 101, 0, LimitOverrun(1, is_text=True)),
        ({}, 150, 50, LimitOverrun(50, is_text=False)),
        ({}, 150, 49, LimitOverrun(50, is_text=True)),
        ({"n": 2}, 300, 100, LimitOverrun(50, is_text=False)),
        ({"n": 2}, 201, 0, LimitOverrun(1, is_text=True)),
        # What is held for beside the limit is none of what the target was told.
        ({"allowance": 80}, 150, 50, LimitOverrun(50, is_text=False)),
        ({}, 100 + OVERRUN_LIMIT, OVERRUN_LIMIT, LimitOverrun(OVERRUN_LIMIT, is_text=False)),
        ({}, 101 + OVERRUN_LIMIT, OVERRUN_LIMIT, None),  # no model makes so many
        ({"kind": RequestKind.TRANSCRIPTION}, 500, 0, None),
    ],
)
def test_what_is_beyond_the_limit_of_a_choice(changes, output, reasoning, found) -> None:
    tokens = TokenCounts(output=output, reasoning=reasoning)
    assert overrun_of(attempt(**changes), tokens) == found


@pytest.mark.parametrize(
    ("members", "newer_alone"),
    [
        ({}, False),
        ({"max_tokens": 5}, False),
        ({"max_completion_tokens": 5}, True),
        ({"max_completion_tokens": 5, "max_tokens": None}, True),
        ({"max_completion_tokens": None}, False),
        ({"max_completion_tokens": 5, "max_tokens": 5}, False),
    ],
)
def test_a_limit_by_its_newer_name_alone(members, newer_alone) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], **members}
    asked = read_chat(decode_members(msgspec.json.encode(body)), max_n=1, session=None)
    assert names_newer_alone(asked) is newer_alone
    # In another dialect the limit has the name that its target knows.
    assert not names_newer_alone(msgspec.structs.replace(asked, translated={}))


def test_a_target_that_wrote_beyond_a_limit_is_told_it_by_both_names(
    run_stack, monkeypatch
) -> None:
    """It does not know the newer name; what it billed beyond the hold is claimed, and once."""
    sent = []
    opened = OpenAIBackend.open

    async def deaf(self, call):
        members = msgspec.json.decode(call.body)
        sent.append({name: members[name] for name in members if name.startswith("max_")})
        members.pop("max_completion_tokens", None)
        return await opened(self, msgspec.structs.replace(call, body=msgspec.json.encode(members)))

    monkeypatch.setattr(OpenAIBackend, "open", deaf)
    with run_stack() as stack:
        (first,) = stack.settled(stack.chat("api", max_completion_tokens=2))
        (second,) = stack.settled(stack.chat("api", max_completion_tokens=2))
    assert sent == [
        {"max_completion_tokens": 2}, {"max_completion_tokens": 2, "max_tokens": 2},
    ]  # fmt: skip
    assert first["claimed_pusd"] > first["cost_pusd"]
    assert (second["claimed_pusd"], second["output_tokens"]) == (None, 2)
