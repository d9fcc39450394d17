"""Members of another dialect stand in for those of chat."""

import json
from typing import Any

from msgspec.structs import replace

from gateway.http.body import encode_raw
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody, InferenceRequest

MESSAGES = [{"role": "user", "content": "hello"}]


def asked(path: str = "/v1/chat/completions", **members: Any) -> InferenceRequest:
    if path == "/v1/chat/completions":
        members.setdefault("messages", MESSAGES)
    text = json.dumps({"model": "m", **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


def test_marked_members_stand_in_for_their_bare_form() -> None:
    plain = asked(temperature=0.5)
    assert plain.with_marks() is plain
    request = replace(
        plain, translated={"messages": encode_raw([{"role": "user", "content": "other"}])}
    )
    members = request.with_marks().members
    assert json.loads(bytes(members["messages"]))[0]["content"] == "other"
    assert members["temperature"] == plain.members["temperature"]
