"""Vectors come as numbers or in base64, as they were asked for, whatever the server sends."""

import json

import pytest

from backends.vectors import encode_vector, pack_answer

NUMBERS, PACKED = [0.5, -1.25], "AAAAPwAAoL8="


@pytest.mark.parametrize("given", [NUMBERS, PACKED])
def test_each_encoding_becomes_the_other(given) -> None:
    assert encode_vector(given, "base64") == PACKED
    assert encode_vector(given, "float") == encode_vector(given, None) == NUMBERS
    assert encode_vector(None, "base64") is None


def answer(*vectors: object, **more: object) -> bytes:
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]
    return json.dumps({"object": "list", "data": data, "model": "m", **more}).encode()


def test_numbers_in_an_answer_are_packed_and_all_else_stays() -> None:
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    told = json.loads(pack_answer(answer(NUMBERS, [1, 2], usage=usage)))
    assert told == json.loads(answer(PACKED, "AACAPwAAAEA=", usage=usage))


@pytest.mark.parametrize(
    "body",
    [
        answer(PACKED), answer(), answer(["x"]), answer([1e300]), b'{"embedding": [1.0]}',
        b'{"data": {"embedding": [1.0]}}', b'{"data": [{"embedding": [1.0]}', b"\xff",
    ],
)  # fmt: skip
def test_what_has_no_numbers_to_pack_is_unchanged(body: bytes) -> None:
    assert pack_answer(body) is body
