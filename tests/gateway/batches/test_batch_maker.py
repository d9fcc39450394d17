"""A batch is made once for each `Idempotency-Key`, and a team has no more than it may."""

import pytest

BODY = {
    "custom_id": "a",
    "params": {"model": "own", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]},
}
PATH = "/messages/batches"


@pytest.fixture
def few(run_stack, make_client):
    """A host where a team has one unfinished batch at most; no runner runs."""
    with run_stack(batches={"team_batches": 1}) as stack:
        yield make_client(stack.url, stack.token)


def files(client) -> int:
    return len(client.ask("GET", "/files?limit=10000").json()["data"])


def test_a_batch_too_many_leaves_nothing_and_frees_its_key(few) -> None:
    first = few.ask("POST", PATH, json={"requests": [BODY]})
    assert first.status_code == 200
    again = {"json": {"requests": [BODY]}, "headers": {"idempotency-key": "later"}}
    for _ in range(2):
        assert few.ask("POST", PATH, **again).status_code == 429
    assert files(few) == 1, "the input of the batch that was made, and no other"
    few.ask("POST", f"{PATH}/{first.json()['id']}/cancel")
