"""The ledger's groups of request kinds are those of the gateway."""

from ledger.request_kinds import CONVERSATION
from router.request_kinds import DECODED_KINDS


def test_a_conversation_is_what_the_router_calls_decoded() -> None:
    assert {kind.value for kind in DECODED_KINDS} == CONVERSATION
