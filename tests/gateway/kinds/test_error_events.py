"""A stream that breaks ends with one event, as clients read errors."""

import json

from gateway.kinds.error_events import error_event


def test_the_error_event_is_one_event_with_all_members():
    raw = error_event('it "broke"\n', "server_error", "upstream_error")
    assert raw.startswith(b"data: {")
    assert raw.endswith(b"}\n\n")
    assert json.loads(raw[6:]) == {
        "error": {
            "message": 'it "broke"\n', "type": "server_error",
            "param": None, "code": "upstream_error",
        }
    }  # fmt: skip
