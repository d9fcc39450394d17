"""Chat completions with `store: true`: stored by the gateway, whole or streamed, on every host."""

import json

import httpx

from gateway.stored import chat_api
from ledger import stored_objects

CHAT = "/v1/chat/completions"


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == 200, answer.text
    return answer.json()


def delete(stack, path: str, token: str | None = None) -> httpx.Response:
    return stack.client.delete(stack.url + path, headers=stack.headers(token))


def test_a_completion_is_stored_before_it_is_whole(hosts, prompts) -> None:
    here, there = hosts
    answer = answered(here.chat("own", store=True, metadata={"a": "b"}, max_tokens=9))
    path = f"{CHAT}/{answer['id']}"
    assert answered(there.get(path)) == {**answer, "metadata": {"a": "b"}}
    asked = answered(there.get(f"{path}/messages"))["data"]
    assert asked == [{"content": "hello there", "role": "user", "id": f"{answer['id']}-0"}]
    assert prompts[-1].keys().isdisjoint({"store", "metadata"}), "no target keeps it"
    changed = answered(there.post(path, {"metadata": {"a": "c"}}))
    assert answered(here.get(path)) == {**answer, "metadata": {"a": "c"}} == changed
    refused = here.post(path, {})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "metadata")
    assert answered(here.get(path)) == changed, "a change that names nothing empties nothing"
    assert answered(there.post(path, {"metadata": None}))["metadata"] == {}
    assert answered(delete(there, path))["deleted"] is True
    assert here.get(path).status_code == 404


def test_a_streamed_completion_is_stored_whole(hosts) -> None:
    here, there = hosts
    streamed = here.chat("own", store=True, stream=True, max_tokens=9)
    lines = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
    chunks = [json.loads(line) for line in lines]
    text = "".join(choice["delta"].get("content") or "" for c in chunks for choice in c["choices"])
    found = answered(there.get(f"{CHAT}/{chunks[0]['id']}"))
    (choice,) = found["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "length")
    assert (found["object"], found["model"]) == ("chat.completion", chunks[0]["model"])
    assert not any(chunk.get("usage") for chunk in chunks)
    told = found["usage"]
    assert (told["completion_tokens"], told["total_tokens"]) == (9, 9 + told["prompt_tokens"])


def test_lists_by_model_and_metadata(stack) -> None:
    token = stack.key("lists", team="lists").token
    names = [
        answered(stack.chat("own", token, store=True, metadata={"n": str(n % 2)}, max_tokens=2))[
            "id"
        ]
        for n in range(5)
    ]

    def page(query: str) -> list[str]:
        return [item["id"] for item in answered(stack.get(f"{CHAT}?{query}", token))["data"]]

    assert page("") == names
    assert page("order=desc&limit=2") == names[:2:-1]
    assert page(f"after={names[2]}") == names[3:]
    assert page("metadata[n]=1") == names[1::2]
    assert page("metadata[n]=1&limit=1") == names[1:2]
    assert page("model=nobody") == []
    answered(stack.post(f"{CHAT}/{names[0]}", {"metadata": {"n": "9"}}, token))
    assert page("") == names, "a change keeps its place"
    assert stack.get(f"{CHAT}?after=x", token).status_code == 404


def test_a_list_of_large_completions_goes_on_behind_each_page(stack, monkeypatch) -> None:
    token = stack.key("large", team="large").token
    asked = {"store": True, "max_tokens": 2, "metadata": {"n": "1"}}
    names = [answered(stack.chat("own", token, **asked))["id"] for _ in range(3)]
    monkeypatch.setattr(stored_objects, "PAGE_BYTES", 1)
    monkeypatch.setattr(chat_api, "PAGE_BYTES", 1)
    seen: list[str] = []
    page = {"has_more": True, "last_id": ""}
    while page["has_more"]:
        after = f"after={page['last_id']}&" if seen else ""
        page = answered(stack.get(f"{CHAT}?{after}metadata[n]=1", token))
        seen += [item["id"] for item in page["data"]]
    assert seen == names


def test_a_change_of_what_was_deleted_meanwhile_makes_nothing(stack, monkeypatch) -> None:
    path = f"{CHAT}/{answered(stack.chat('own', store=True, max_tokens=2))['id']}"
    real = chat_api.find_stored

    async def delete_then(store, identity, object_id, *names):
        found = await real(store, identity, object_id, *names)
        await store.delete(identity.team_id, object_id)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(chat_api, "find_stored", delete_then)
        changed = stack.post(path, {"metadata": {"a": "c"}})
    assert changed.status_code == 404
    assert stack.get(path).status_code == 404


def test_a_completion_without_store_is_not_stored(stack) -> None:
    for asked in ({}, {"store": False}):
        answer = answered(stack.chat("own", max_tokens=2, **asked))
        assert stack.get(f"{CHAT}/{answer['id']}").status_code == 404


def test_another_teams_completion_does_not_exist(stack) -> None:
    answer = answered(stack.chat("own", store=True, max_tokens=2))
    other = stack.key("stranger", team="others").token
    path = f"{CHAT}/{answer['id']}"
    assert stack.get(path, other).status_code == 404
    assert stack.get(f"{path}/messages", other).status_code == 404
    assert stack.post(path, {"metadata": {}}, other).status_code == 404
    assert delete(stack, path, other).status_code == 404
    assert answered(stack.get(path))["id"] == answer["id"]
    assert answered(stack.get(CHAT, other))["data"] == []


def test_a_refusal_is_not_stored_and_posts_go_on_as_they_did(stack) -> None:
    refused = stack.chat("nobody", store=True)
    assert refused.status_code == 404
    assert stack.client.put(stack.url + CHAT, headers=stack.headers()).status_code == 405
