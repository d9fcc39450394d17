"""Shapes of errors without a member `error`, as that member would have them."""

import pytest

from backends.error_shapes import bare_message, shaped_error, words_error


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"base_resp": {"status_code": 1002, "status_msg": "m"}}, {"code": 429, "message": "m"}),
        ({"base_resp": {"status_code": 7, "status_msg": "m"}}, {"code": 7, "message": "m"}),
        ({"base_resp": {"status_code": 0, "status_msg": "m"}}, None),
        ({"error_code": 18, "error_msg": "m"}, {"code": 429, "message": "m"}),
        ({"errors": ["m"]}, {"message": "m"}),
        ({"errors": ["m"], "output": "x"}, None),
        (
            {"__type": "ThrottlingException", "message": "m"},
            {"type": "ThrottlingException", "message": "m"},
        ),
        (
            {"Response": {"Error": {"Code": "RequestLimitExceeded", "Message": "m"}}},
            {"code": "RequestLimitExceeded", "message": "m"},
        ),
        (
            {"code": "x", "message": "m", "usage": {"total_tokens": 0, "a": [0]}},
            {"message": "m", "code": "x"},
        ),
        ({"code": "x", "message": "m", "usage": {"total_tokens": 7}}, None),
        ({"status": 429, "title": "m"}, {"message": "m", "status": 429}),
        ({"code": "x", "message": "m"}, {"message": "m", "code": "x"}),
        ({"code": "ok", "message": "m"}, None),
        ({"message": {"error": "m"}}, {"message": "m"}),
        ({}, None),
    ],
)
def test_a_shape_is_read_as_a_member_error(value, error) -> None:
    assert shaped_error(value) == error


def test_a_text_alone_and_an_error_in_words() -> None:
    assert bare_message({"message": "m", "request_id": "r"}) == "m"
    assert bare_message({"message": "m", "id": "r"}) is None
    assert words_error({"content": None, "error": {"code": 1}}) == {"code": 1}
    assert words_error({"content": "x", "error": None}) is None
