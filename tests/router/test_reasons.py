"""One table of reasons: every member has its entry, and the entries agree with themselves."""

from gateway.errors import TABLE
from router.decide import DISREGARDED
from router.reasons import PERMANENT, REASONS, Outlook, Reason, with_outlook


def test_every_reason_has_one_entry_in_the_order_of_its_place() -> None:
    assert list(REASONS) == list(Reason)
    assert [traits.place for traits in REASONS.values()] == list(range(len(Reason)))


def test_a_permanent_reason_says_what_to_change() -> None:
    for reason, traits in REASONS.items():
        assert (traits.remedy is not None) is (reason in PERMANENT), reason
        if traits.remedy is not None:
            assert 400 <= TABLE[traits.remedy.error].status < 500


def test_a_best_effort_disregards_only_what_passes() -> None:
    assert with_outlook(Outlook.FULL, Outlook.AWAY) >= DISREGARDED
    assert {"kv_headroom", "ttft", "tpot", "circuit_open", "rate_limit"} == DISREGARDED


def test_sentences_are_there_and_differ() -> None:
    sentences = [traits.sentence for traits in REASONS.values()]
    assert all(sentences)
    assert len(set(sentences)) == len(sentences)
