"""A compaction opens for its team, wherever it stands in the input."""

from gateway.request.dialects.compaction import PREFACE, last_user_messages
from gateway.request.store.compaction import CompactionReader, seal_summary
from router.types import Residency


async def test_compactions_are_opened_in_their_places(open_store) -> None:
    store = open_store()
    loose = await seal_summary(store, "a", "one", "any")
    tight = await seal_summary(open_store(), "a", "two", "internal_only")
    items = [
        {"type": "compaction", "encrypted_content": loose}, "x",
        {"type": "compaction_summary", "encrypted_content": tight},
    ]  # fmt: skip
    opened, residency = await CompactionReader(store, "a").open_all(items)
    assert [item if isinstance(item, str) else item["content"][0]["text"] for item in opened] == [
        PREFACE + "one", "x", PREFACE + "two"
    ]  # fmt: skip
    words = {"role": "user", "content": [{"type": "input_text", "text": f"{PREFACE}mine"}]}
    kept = last_user_messages([*opened, words])
    assert [message["content"] for message in kept] == [words["content"]]
    assert residency is Residency.INTERNAL_ONLY
    assert "one" not in loose
    _, residency = await CompactionReader(store, "a").open_all(items[:1])
    assert residency is Residency.ANY
