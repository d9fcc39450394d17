"""A stored object: what its encryption is bound to."""

from gateway.request.store.stored_document import StoredDocument


def test_owner_and_content() -> None:
    document = StoredDocument(
        team_id="a", id="r", kind="response", content={}, created_us=1, expires_us=2
    )
    assert document.owner == ("a", "r", "response", "any")
    assert document.with_content({"b": 1}).content == {"b": 1}
    assert document.content == {}
