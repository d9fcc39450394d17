"""What counted for nothing is named in the head of an answer; odd names are only counted."""

import asyncio

from gateway.request.ignored_names import IGNORED, listed_names, telling_ignored


def test_names_that_a_header_cannot_hold_are_counted() -> None:
    assert listed_names(("top_k", "min_p")) == b"top_k, min_p"
    assert listed_names(("a\r\nx: y", "\u00e9", "k" * 65)) == b"and 3 more"
    many = listed_names([f"m{number}" for number in range(100)])
    assert many.startswith(b"m0, m1, ")
    assert many.endswith(b", m31, and 68 more")


def test_they_stand_beside_what_the_answer_names_itself() -> None:
    sent = []

    async def send(message) -> None:
        sent.append(message)

    async def answer(headers) -> None:
        sending = telling_ignored(["tags.run"])(send)
        await sending({"type": "http.response.start", "status": 200, "headers": headers})
        await sending({"type": "http.response.body", "body": b"x"})

    for headers in ([], [(IGNORED, b"seed"), (b"x-request-id", b"r")]):
        asyncio.run(answer(headers))
    first, body, second, _ = sent
    assert first["headers"] == [(IGNORED, b"tags.run")]
    assert second["headers"] == [(b"x-request-id", b"r"), (IGNORED, b"seed, tags.run")]
    assert body == {"type": "http.response.body", "body": b"x"}
