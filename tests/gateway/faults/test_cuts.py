"""A target's answer split, or broken off, anywhere: the same answer, or one that says it is broken.

Nothing is said twice, nothing is cut off in silence, and each request has one settled row.
"""

import pytest

from gateway.kinds import relay

CONTENT = (
    b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"\xc3\xa4"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,'
    b'"completion_tokens":4,"total_tokens":11}}'
)
STEP = 11  # every place would take minutes; each run of the suite looks at the same ones
ENDINGS = ["reset", "fin", "half"]


@pytest.mark.parametrize("model", ["own", "api"])
def test_a_split_anywhere_changes_nothing(faulty, rule, answers, model) -> None:
    text, since = answers.stream(), faulty.last_row()
    usual = faulty.ask(model, rule(answer=text), stream=True)
    assert (usual.status_code, usual.content.count(b"[DONE]")) == (200, 1)
    for word in answers.WORDS:
        assert word.encode() in usual.content
    assert b"prompt_tokens" not in usual.content  # nobody asked for it
    places = range(1, len(text), STEP)
    for place in places:
        answer = faulty.ask(model, rule(answer=text, split_at=place), stream=True)
        assert answer.content == usual.content, place
    for size in (1, 2, 3, 7):
        answer = faulty.ask(model, rule(answer=text, slice_bytes=size), stream=True)
        assert answer.content == usual.content, size
    rows = faulty.all_settled(since, 1 + len(places) + 4)
    assert {(row["status"], row["basis"], row["output_tokens"]) for row in rows} == {
        ("finished", "reported", 4)
    }


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("model", ["own", "api"])
def test_a_stream_that_breaks_anywhere_says_so(
    faulty, rule, answers, events_of, model, ending
) -> None:
    text, since = answers.stream(), faulty.last_row()
    usual = faulty.ask(model, rule(answer=text), stream=True).content
    end, places = text.index(b"[DONE]\n\n") + 8, range(0, len(text), STEP)
    kinds = set()
    for place in places:
        broken = rule(answer=text, after_bytes=place, ending=ending)
        answer = faulty.ask(model, broken, stream=True)
        kinds.add(_kind(answer, usual, events_of, is_whole=place >= end))
    assert kinds == {"refused", "broken", "whole"}
    faulty.all_settled(since, len(places) + 1)


def _kind(answer, usual: bytes, events_of, *, is_whole: bool) -> str:
    if answer.status_code != 200:
        assert answer.status_code == 502
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        return "refused"
    if answer.content.endswith(b"[DONE]\n\n"):
        assert answer.content == usual
        return "whole"
    assert not is_whole
    sent, _, said = answer.content.rpartition(b"data: ")
    assert usual.startswith(sent)
    assert sent.count(b"error") == 0
    assert list(events_of(b"data: " + said)[0]) == ["error"]
    return "broken"


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_answer_in_one_piece_is_whole_or_none(faulty, rule, answers, ending) -> None:
    text, since = answers.whole(CONTENT), faulty.last_row()
    places = range(0, len(text), STEP)
    for place in places:
        broken = rule(answer=text, after_bytes=place, ending=ending)
        assert faulty.ask("api", broken).status_code == 502
    kept = faulty.ask("api", rule(answer=text))
    assert (kept.status_code, kept.content) == (200, CONTENT)
    rows = faulty.all_settled(since, len(places) + 1)
    assert [row["status"] for row in rows] == ["upstream_error"] * len(places) + ["finished"]


def test_without_the_check_of_its_end_a_cut_stream_would_look_whole(
    faulty, rule, answers, monkeypatch
) -> None:
    """The negative control."""
    monkeypatch.setattr(relay.ByteRelay, "check_end", lambda _: None)
    body = answers.events()[:200]
    text = answers.HEAD + b"connection: close\r\n\r\n" + body
    answer = faulty.ask("api", rule(answer=text, ending="fin"), stream=True)
    assert b"error" not in answer.content
    monkeypatch.undo()
    answer = faulty.ask("api", rule(answer=text, ending="fin"), stream=True)
    assert answer.content.count(b'{"error"') == 1


def test_without_events_kept_together_a_split_changes_the_answer(
    faulty, rule, answers, monkeypatch
) -> None:
    """The negative control: segments taken for events."""
    monkeypatch.setattr(relay.EventSplitter, "feed", lambda _, chunk: [chunk])
    text = answers.stream()
    place = text.index("日本".encode()) + 1
    answer = faulty.ask("own", rule(answer=text, split_at=place), stream=True)
    assert b'{"error"' in answer.content
