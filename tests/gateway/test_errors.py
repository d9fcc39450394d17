"""One table from kind to HTTP, one body with all four members."""

import json

import pytest

from gateway.errors import TABLE, RequestError, body


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_every_kind_has_an_openai_body(kind: str) -> None:
    error = RequestError(kind, "Do this instead.", param="model")
    document = json.loads(body(error))
    assert document == {
        "error": {
            "message": "Do this instead.",
            "type": TABLE[kind].type,
            "param": "model",
            "code": TABLE[kind].code,
        }
    }
    assert 400 <= error.row.status <= 599
