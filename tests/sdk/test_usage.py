"""The official SDK's admin resources, unchanged, read usage and costs from the gateway."""

from decimal import Decimal

import pytest


@pytest.fixture(scope="session")
def seen(gateway, usage_program) -> dict:
    """What the SDK saw once its own requests were settled, and the rows that they left."""
    run, team = usage_program
    run("ask")
    query = "SELECT * FROM attempts WHERE team_id = :team AND settled_us IS NOT NULL"

    def settled() -> list[dict]:
        rows = gateway.rows(query, team=team)
        return rows if len(rows) == 3 else []

    rows = gateway.until(settled, 10)
    return {**run("look"), "rows": rows, "team": team}


def chat(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["kind"] == "chat"]


def test_completions_are_the_ledgers(seen: dict) -> None:
    found, rows = seen["completions"], chat(seen["rows"])
    assert found["types"] == ["DataResultOrganizationUsageCompletionsResult"]
    assert found["page"] == ["page", False, None]
    assert (found["requests"], found["models"]) == (2, ["spilled"])
    assert found["projects"] == [seen["team"]]
    assert found["tokens"] == [sum(row[name] for row in rows)
                               for name in ("input_tokens", "output_tokens")]  # fmt: skip


def test_pages_are_followed_to_the_end(seen: dict) -> None:
    assert seen["pages"]["buckets"] in {61, 62}
    assert seen["pages"]["ascending"] is True
    assert seen["pages"]["tokens"] >= sum(row["output_tokens"] for row in chat(seen["rows"])) > 0


def test_embeddings_and_costs_have_their_own_types(seen: dict) -> None:
    assert seen["embeddings"]["types"] == ["DataResultOrganizationUsageEmbeddingsResult"]
    assert seen["embeddings"]["tokens"] > 0
    assert seen["costs"]["types"] == ["DataResultOrganizationCostsResult"]
    assert seen["costs"]["currencies"] == ["usd"]
    assert seen["costs"]["items"] == ["standin/chat, input", "standin/chat, output"]
    booked = sum(row["cost_pusd"] for row in chat(seen["rows"]))
    assert seen["costs"]["usd"] == pytest.approx(float(Decimal(booked).scaleb(-12)), rel=1e-12)


def test_an_inference_key_is_refused_as_the_sdk_knows_it(seen: dict) -> None:
    assert seen["refused"] == {
        "raised": "PermissionDeniedError",
        "status": 403,
        "code": "forbidden",
    }
