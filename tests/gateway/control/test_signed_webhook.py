"""What an address hears, and what counts as heard."""

import hmac
import json

import httpx
import pytest

from backends.secret import Secret
from gateway.control.signed_webhook import SignedWebhook, signature

ADDRESS = "https://chat.example/hooks/s3cret"


class Noon:
    def wall_us(self) -> int:
        return 1_780_056_000_500_000


async def posted(answer, secret: str | None = "k") -> tuple[bool, list[httpx.Request]]:
    heard: list[httpx.Request] = []

    def hear(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer)

    key = None if secret is None else Secret(secret)
    webhook = SignedWebhook("the webhook", Secret(ADDRESS), key, Noon())
    async with httpx.AsyncClient(transport=httpx.MockTransport(hear)) as client:
        return await webhook.post(client, "m1", {"a": 1}), heard


async def test_a_body_is_signed_with_its_time() -> None:
    was_heard, (request,) = await posted(204)
    assert was_heard
    assert json.loads(request.content) == {"a": 1}
    expected = hmac.new(b"k", b"1780056000." + request.content, "sha256").hexdigest()
    assert request.headers["x-breakeven-signature"] == f"t=1780056000,v1={expected}"
    assert signature(b"k", request.content, 1780056000) == f"t=1780056000,v1={expected}"


async def test_without_a_secret_there_is_no_signature() -> None:
    _, (request,) = await posted(200, None)
    assert "x-breakeven-signature" not in request.headers


@pytest.mark.parametrize("answer", [302, 404, 500, httpx.ConnectError("no")])
async def test_everything_but_success_is_not_heard_and_the_log_hides_the_address(
    answer, caplog
) -> None:
    was_heard, _ = await posted(answer)
    assert not was_heard
    assert "m1" in caplog.text
    assert "s3cret" not in caplog.text
