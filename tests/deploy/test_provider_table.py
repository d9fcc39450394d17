"""What left for a provider is read for its differences from chat; more than those is named."""

import json

import httpx
import pytest

from deploy import provider_table
from deploy.provider_table import KEY, PLACE, RICH, NotChat, quirks_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]
NONE = {"renames": {}, "leaves_out": []}


def sent(
    without: tuple[str, ...] = (), path: str = "/chat/completions", key: str = KEY, **more: object
) -> httpx.Request:
    body = {name: value for name, value in RICH.items() if name not in without} | more
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Request("POST", PLACE + path, json=body, headers=headers)


@pytest.mark.parametrize(
    ("request_sent", "quirks"),
    [
        (sent(), NONE),
        (sent(stream=True, stream_options={}), NONE),
        (sent(path="/v1/chat/completions"), {"path": "/v1", **NONE}),
        (sent(("seed",), random_seed=7), {"renames": {"seed": "random_seed"}, "leaves_out": []}),
        (sent(("user", "seed")), {"renames": {}, "leaves_out": ["seed", "user"]}),
        (sent(("tools", "tool_choice")), NONE),
        (sent(temperature=1), {"temperature_max": 1, **NONE}),
        (sent(messages=[{**m, "content": "ab"} if isinstance(m["content"], list) else m
                        for m in RICH["messages"]]), {"joins_texts": True, **NONE}),
    ],
)  # fmt: skip
def test_differences_are_read(request_sent: httpx.Request, quirks: dict) -> None:
    assert quirks_of(request_sent) == quirks


@pytest.mark.parametrize(
    ("request_sent", "reason"),
    [
        (sent(path="/api/chat"), "went to"),
        (sent(key="other"), "key"),
        (sent(model="accounts/some-model"), "other values: model"),
        (sent(usage={"include": True}), "further members: usage"),
        (sent(messages=RICH["messages"][1:]), "other messages"),
        (sent(messages=[{**m, "content": "?"} for m in RICH["messages"]]), "message of system"),
    ],
)
def test_more_than_differences_is_named(request_sent: httpx.Request, reason: str) -> None:
    with pytest.raises(NotChat, match=reason):
        quirks_of(request_sent)


@pytest.mark.long
async def test_the_table_says_what_litellm_does() -> None:
    observed = provider_table.text(await provider_table.observe_all())
    written = provider_table.WRITTEN.read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(observed), f"run `{provider_table.COMMAND}`"
