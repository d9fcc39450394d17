"""What is known of a prompt has defaults that say nothing."""

from router.prompts import PromptPrefix, RequestUnits
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest


def test_without_more_a_request_has_no_beginning_and_no_extent() -> None:
    request = RoutingRequest(RequestKind.CHAT, "m", 10, 12, None, OutputMoments(0, 1.0, 1.0, 1.0))
    assert request.extent is None
    assert request.beginning == PromptPrefix() == ((), 0, 1, 0)


def test_all_of_an_extent_is_in_one_input_unless_it_is_said() -> None:
    assert RequestUnits().longest == 1.0
    assert not RequestUnits(audio_ms=5).audio_known
