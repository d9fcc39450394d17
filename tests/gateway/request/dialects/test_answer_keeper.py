"""What keepers have in common."""

from gateway.request.dialects.answer_keeper import BackgroundKeeper, KeptAnswer
from gateway.request.store.compaction import CompactionKeeper
from gateway.request.store.continued_request import ContinuedRequest
from gateway.request.store.response_keeper import ResponseKeeper


def test_an_answer_is_stored_unless_a_refusal_says_why() -> None:
    assert KeptAnswer({"id": "r"}).refusal is None


def test_only_responses_are_made_in_the_background() -> None:
    assert hasattr(ResponseKeeper, "store")
    assert not hasattr(CompactionKeeper, "store")
    assert ContinuedRequest(stores=True).background is False
    assert BackgroundKeeper is not None
