"""What a command is pointed at may be the wrong port, or never end: bounded, and said in words."""

from collections.abc import AsyncIterator

import httpx
import pytest

from backends.engine.bounded import NobodyThere, NoPage, fetch_page, models_of

URL = "http://engine/v1/models"


async def page(answer, **limits):
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        return await fetch_page(client, URL, **limits)


async def test_a_list_of_models_is_read():
    said = {"data": [{"id": "one"}, {"id": "two"}]}
    assert models_of(await page(lambda _: httpx.Response(200, json=said))) == ["one", "two"]


async def test_an_answer_without_an_end_is_given_up():
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1024
            yield b"a" * 1024

    with pytest.raises(NoPage, match="larger than 8,192 bytes"):
        await page(lambda _: httpx.Response(200, content=endless()), limit_bytes=8192)
    assert sent <= 10 * 1024


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(302, headers={"location": "http://other/v1"}), "sends on to 'http://other"),
        (httpx.Response(200, text="<html>hello</html>"), "not JSON"),
        (httpx.Response(200, json=[1]), "lists no models"),
        (httpx.Response(200, json={"data": [{"id": 3}]}), "lists no models"),
        (httpx.Response(200, json={"data": []}), "lists no models"),
        (httpx.Response(401, json={"data": [{"id": "m"}]}), "returned 401"),
        (
            httpx.Response(200, json={"data": [{"id": "m\x1b[31m"}]}),
            r"'m\\x1b\[31m' has unprintable",
        ),
    ],
)
async def test_what_is_no_list_of_models_is_said(answer, said):
    with pytest.raises(NoPage, match=said):
        models_of(await page(lambda _: answer))


async def test_a_host_that_is_not_there_is_said():
    def refused(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    with pytest.raises(NobodyThere, match="nothing answers there: connection refused"):
        await page(refused)
    async with httpx.AsyncClient() as client:
        with pytest.raises(NobodyThere, match="not an address"):
            await fetch_page(client, "engine:8000/v1/models")
