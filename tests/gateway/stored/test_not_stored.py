"""Where nothing is stored, each address of stored answers says why and what to do instead."""

import httpx
import pytest
from fastapi import FastAPI

from gateway.errors import RequestError
from gateway.stored.not_stored import not_stored_router


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items"),
        ("POST", "/v1/conversations"),
        ("GET", "/v1/conversations/conv_1/items/msg_1"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/chatcmpl-1"),
        ("GET", "/v1/chat/completions/chatcmpl-1/messages"),
    ],
)
async def test_each_address_says_why(method: str, path: str) -> None:
    app = FastAPI()
    app.include_router(not_stored_router())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway", trust_env=False
    ) as client:
        with pytest.raises(RequestError) as refused:
            await client.request(method, path)
    assert (refused.value.kind, refused.value.retry) == ("not_served", False)
    assert "`store: false`" in refused.value.message
