"""Lines of a batch name the tags that its request named: they are judged and booked by them."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from gateway.batches import batch_maker

ASK = [{"role": "user", "content": "hi"}]
GOOD = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
IGNORED = "x-breakeven-ignored"


def make(client: Any, dialect: str, line: Any, tags: str, **sent: str) -> Any:
    """A batch of two lines, the second dearer than a run may be."""
    headers = {"x-breakeven-tags": tags.encode(), **sent}
    bodies = [{"model": "api", "messages": ASK, "max_tokens": most} for most in (4, 90_000)]
    if dialect == "messages":
        requests = [{"custom_id": f"c{at}", "params": body} for at, body in enumerate(bodies)]
        given: dict[str, Any] = {"json": {"requests": requests}}
        return client.ask("POST", "/messages/batches", headers=headers, **given)
    file = client.upload([line(f"c{at}", **body) for at, body in enumerate(bodies)])
    asked = {**GOOD, "input_file_id": file["id"]}
    return client.ask("POST", "/batches", headers=headers, json=asked)


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_lines_are_judged_and_booked_with_the_tags_of_their_batch(
    client, stack, line, with_runner, patiently, dialect
) -> None:
    """Red before: the header was ignored, and a run's batches were bound by nothing."""
    run = f"{dialect}-ü"
    answer = make(client, dialect, line, f"run={run},gone=1")
    assert answer.status_code == 200, answer.text
    assert answer.headers[IGNORED] == "x-breakeven-tags.gone"
    batch_id = answer.json()["id"]

    def booked() -> list[dict[str, Any]]:
        rows = stack.rows("request_id LIKE :of", of=f"{batch_id}-%")
        return [row for row in rows if row["settled_us"] is not None]

    with with_runner(stack):
        (row,) = patiently(booked)
        refused = patiently(lambda: _refused(stack, batch_id))
    tags = row["tags"] if isinstance(row["tags"], dict) else json.loads(row["tags"])
    assert (tags["run"], tags["batch"]) == (run, batch_id)
    assert refused == [f"tag:run={run}@month"]


def _refused(stack: Any, batch_id: str) -> list[str]:
    query = text("SELECT DISTINCT scope FROM refusals WHERE request_id LIKE :of")
    with stack.database.connect() as connection:
        return [*connection.execute(query, {"of": f"{batch_id}-%"}).scalars()]


def test_a_batch_is_refused_for_what_is_no_tag(client, line) -> None:
    for dialect in ("chat", "messages"):
        assert make(client, dialect, line, "run=*").status_code == 400


def test_one_key_stands_for_one_set_of_tags(client, monkeypatch) -> None:
    """Also when the tag's budget has ended meanwhile: red before, as another request's key."""
    body = {"requests": [{"custom_id": "a", "params": {"model": "own", "messages": ASK,
                                                       "max_tokens": 4}}]}  # fmt: skip

    def ask(tags: str) -> Any:
        headers = {"x-breakeven-tags": tags, "idempotency-key": "tagged"}
        return client.ask("POST", "/messages/batches", headers=headers, json=body)

    assert ask("run=a").status_code == 200
    assert ask("run=a").headers["idempotent-replayed"] == "true"
    assert ask("run=b").status_code == 422
    monkeypatch.setattr(batch_maker, "with_request_tags", lambda who, *_: (who, ("x.run",)))
    assert ask("run=a").headers["idempotent-replayed"] == "true"
    assert ask("run=b").status_code == 422
