"""A request in a dialect that its client and some targets share, sent unchanged to these."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode, encode_raw

METADATA, USER = "metadata", "user_id"


class NativeRequest(msgspec.Struct, frozen=True):
    """Anthropic's Messages as the client wrote them, with members in the same order.

    `ignored` are members that no target gets. `headers` are what the client asks of the API besides
    its body. `refusal` is the error if no target has this API, as chat cannot express the request;
    None where chat can.
    """

    members: Members
    ignored: tuple[str, ...] = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    refusal: RequestError | None = None

    def left_out(self, *, tells_users: bool) -> tuple[str, ...]:
        """Return the names of members that a target does not get."""
        if tells_users or METADATA not in self.members:
            return self.ignored
        told: dict[str, Any] = decode_member(self.members, METADATA, dict[str, Any], {})
        return self.ignored if told.get(USER) is None else (*self.ignored, f"{METADATA}.{USER}")

    def body_for(self, upstream_model: str, *, max_tokens: int | None, tells_users: bool) -> bytes:
        """Return the body for a target, in the same order, since caches depend on its beginning."""
        members = dict(self.members)
        members["model"] = encode_raw(upstream_model)
        if max_tokens is not None:
            members["max_tokens"] = encode_raw(max_tokens)
        if METADATA in members and not tells_users:
            told: dict[str, Any] = decode_member(members, METADATA, dict[str, Any], {})
            rest = {name: value for name, value in told.items() if name != USER}
            if rest:
                members[METADATA] = encode_raw(rest)
            else:
                del members[METADATA]
        return encode(members)
