"""Conversations over real sockets: made, read in pages, gone on from, and nobody else's."""

import httpx
import pytest

ASK = {"model": "own", "input": "hello there", "max_output_tokens": 12}
CONVERSATIONS, RESPONSES = "/v1/conversations", "/v1/responses"


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == 200, answer.text
    return answer.json()


def delete(stack, path: str, token: str | None = None) -> httpx.Response:
    return stack.client.delete(stack.url + path, headers=stack.headers(token))


def texts_of(page: dict) -> list[str]:
    return [item["content"][0]["text"] for item in page["data"]]


def test_a_conversation_lives_on_every_host(hosts, prompts) -> None:
    here, there = hosts
    items = [{"role": "user", "content": "My name is Ada."}]
    made = answered(here.post(CONVERSATIONS, {"metadata": {"topic": "a"}, "items": items}))
    path = f"{CONVERSATIONS}/{made['id']}"
    assert answered(there.get(path)) == made
    assert made["object"] == "conversation"
    first = answered(there.post(RESPONSES, {**ASK, "conversation": made["id"]}))
    assert first["conversation"] == {"id": made["id"]}
    answered(here.post(RESPONSES, {**ASK, "input": "again", "conversation": {"id": made["id"]}}))
    said, answer, again = prompts[-1]["messages"]
    assert [part["text"] for part in said["content"]] == ["My name is Ada.", "hello there"]
    assert answer["content"] == first["output"][0]["content"][0]["text"]
    assert again["content"] == "again"
    listed = answered(there.get(f"{path}/items?order=asc"))
    assert texts_of(listed)[:3] == [
        "My name is Ada.", "hello there", first["output"][0]["content"][0]["text"]
    ]  # fmt: skip
    assert listed["data"][2]["id"] == first["output"][0]["id"]
    changed = answered(here.post(path, {"metadata": {"topic": "b"}}))
    assert answered(there.get(path)) == {**made, "metadata": {"topic": "b"}} == changed
    refused = here.post(path, {})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "metadata")
    assert answered(there.get(path)) == changed
    assert answered(here.post(path, {"metadata": None}))["metadata"] == {}
    assert answered(delete(there, path))["deleted"] is True
    for gone in (path, f"{path}/items", f"{path}/items/{listed['first_id']}"):
        assert here.get(gone).status_code == 404
    assert here.post(RESPONSES, {**ASK, "conversation": made["id"]}).status_code == 404


def test_items(stack) -> None:
    made = answered(stack.post(CONVERSATIONS, {}))
    path = f"{CONVERSATIONS}/{made['id']}/items"
    given = [{"role": "user", "content": f"say {number}", "id": "mine"} for number in range(3)]
    added = answered(stack.post(path, {"items": given}))
    assert texts_of(added) == ["say 0", "say 1", "say 2"]
    assert len({item["id"] for item in added["data"]}) == 3
    assert texts_of(answered(stack.get(f"{path}?limit=2"))) == ["say 2", "say 1"]
    one = f"{path}/{added['data'][1]['id']}"
    assert answered(stack.get(one)) == added["data"][1]
    assert answered(delete(stack, one))["id"] == made["id"]
    assert stack.get(one).status_code == 404
    assert texts_of(answered(stack.get(f"{path}?order=asc"))) == ["say 0", "say 2"]
    other = answered(stack.post(CONVERSATIONS, {}))["id"]
    assert stack.get(f"{CONVERSATIONS}/{other}/items/{added['data'][0]['id']}").status_code == 404


def test_another_teams_conversation_does_not_exist(hosts) -> None:
    here, there = hosts
    made = answered(here.post(CONVERSATIONS, {"items": [{"role": "user", "content": "hi"}]}))
    item = answered(here.get(f"{CONVERSATIONS}/{made['id']}/items"))["data"][0]
    other = here.key("stranger", team="others").token
    path = f"{CONVERSATIONS}/{made['id']}"
    for gone in (path, f"{path}/items", f"{path}/items/{item['id']}"):
        assert there.get(gone, other).status_code == 404
        assert there.post(gone, {"items": []}, other).status_code in {404, 405}
        assert delete(there, gone, other).status_code in {404, 405}
    for asked in (
        {"conversation": made["id"]}, {"input": [{"type": "item_reference", "id": item["id"]}]}
    ):  # fmt: skip
        assert here.post(RESPONSES, {**ASK, **asked}, other).status_code == 404
    assert answered(there.get(path)) == made


def test_what_a_confined_key_wrote_reaches_no_api(stack) -> None:
    confined = stack.key("confined", residency="internal_only").token
    items = [{"role": "user", "content": "a secret"}]
    made = answered(stack.post(CONVERSATIONS, {"items": items}, confined))
    asked = {**ASK, "model": "api", "conversation": made["id"]}
    assert stack.post(RESPONSES, asked).json()["error"]["code"] == "residency"
    answered(stack.post(RESPONSES, {**asked, "model": "own"}))
    loose = answered(stack.post(CONVERSATIONS, {}))
    answered(stack.post(RESPONSES, {**asked, "conversation": loose["id"]}))


def test_what_is_wrong_is_refused_by_name(stack) -> None:
    many = [{"role": "user", "content": "x"}] * 21
    for body, param in (
        ({"items": many}, "items"), ({"items": "x"}, "items"), ({"items": [5]}, "items[0]"),
        ({"metadata": {"a": 5}}, "metadata"), ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata"), ({"metadata": []}, "metadata"),
    ):  # fmt: skip
        refused = stack.post(CONVERSATIONS, body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    made = answered(stack.post(CONVERSATIONS, {"items": []}))
    for body in ({"items": []}, {}):
        refused = stack.post(f"{CONVERSATIONS}/{made['id']}/items", body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "items")
    assert stack.post(CONVERSATIONS, [1]).status_code == 400
    assert stack.get(f"{CONVERSATIONS}/conv_1").status_code == 404


def test_an_item_that_refers_to_another_is_that_item(stack) -> None:
    """A reference that was stored as it was sent refused every turn of its conversation."""
    said = answered(stack.post(RESPONSES, ASK))["output"][0]
    items = [{"type": "item_reference", "id": said["id"]}]
    made = answered(stack.post(CONVERSATIONS, {"items": items}))
    (kept,) = answered(stack.get(f"{CONVERSATIONS}/{made['id']}/items"))["data"]
    assert kept["content"] == said["content"]
    assert kept["id"] != said["id"]
    answered(stack.post(RESPONSES, {**ASK, "conversation": made["id"]}))
    theirs = stack.post(
        CONVERSATIONS, {"items": items}, token=stack.key("stranger", team="others").token
    )
    assert (theirs.status_code, theirs.json()["error"]["param"]) == (404, "items[0]")


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"type": "video"}, "items[0]"),
        ({"role": "ghost", "content": "x"}, "items[0].role"),
        ({"role": "user"}, "items[0].content"),
        ({"type": "compaction", "encrypted_content": "AAAA"}, "items[0]"),
        ({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
         "items[0].content[0]"),
    ],
)  # fmt: skip
def test_an_item_that_no_turn_can_go_on_from_is_refused_at_once(stack, item, place) -> None:
    for path in (
        CONVERSATIONS,
        f"{CONVERSATIONS}/{stack.post(CONVERSATIONS, {}).json()['id']}/items",
    ):
        refused = stack.post(path, {"items": [item]})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, place)
