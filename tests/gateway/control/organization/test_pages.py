"""Usage and costs over HTTP: OpenAI's shapes, the ledger's figures, and each reader's own team."""

import time
from decimal import Decimal

import pytest

from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.writing.repository import LedgerRepository

COMPLETIONS = "/v1/organization/usage/completions"
EMBEDDINGS = "/v1/organization/usage/embeddings"
COSTS = "/v1/organization/costs"
PATHS = (COMPLETIONS, EMBEDDINGS, COSTS)


@pytest.fixture(scope="module")
def asked(stack):
    """Three answers of two teams and one embedding, settled; readers of each kind."""
    ads = stack.key("ads", team="ads", user="ann").token
    answers = [
        stack.chat("api", max_tokens=5),
        stack.chat("pair", ads, max_tokens=7),
        stack.chat("own", ads, max_tokens=3),
        stack.post("/v1/embeddings", {"model": "embed", "input": "hello"}),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        stack.settled(answer)
    stack.key("everyone", scopes=("usage:all",))
    stack.key("reader", team="ads", scopes=("usage",))
    return stack


def page(asked, path: str, reader: str = "everyone", query: str = "") -> dict:
    since = int(time.time()) - 86_400
    answer = asked.get(f"{path}?start_time={since}{query}", asked.key(reader).token)
    assert answer.status_code == 200, answer.text
    return answer.json()


def results(asked, path: str, reader: str = "everyone", query: str = "") -> list[dict]:
    return [
        result
        for bucket in page(asked, path, reader, query)["data"]
        for result in bucket["results"]
    ]


def test_the_envelope_is_a_page_of_buckets(asked) -> None:
    found = page(asked, COMPLETIONS, query="&bucket_width=1h&limit=2")
    assert (found["object"], found["has_more"]) == ("page", True)
    assert [bucket["object"] for bucket in found["data"]] == ["bucket", "bucket"]
    first, second = found["data"]
    assert first["end_time"] == second["start_time"]
    after = page(asked, COMPLETIONS, query=f"&bucket_width=1h&limit=168&page={found['next_page']}")
    assert after["data"][0]["start_time"] == second["end_time"]
    assert (after["has_more"], after["next_page"]) == (False, None)


def test_completions_count_what_the_ledger_holds(asked) -> None:
    rows = asked.rows("kind <> 'embedding'")
    found = results(asked, COMPLETIONS)
    assert {finding["object"] for finding in found} == {"organization.usage.completions.result"}
    for name, column in (
        ("output_tokens", "output_tokens"),
        ("input_uncached_tokens", "input_tokens"),
    ):
        assert sum(finding[name] for finding in found) == sum(row[column] for row in rows)
    assert sum(finding["num_model_requests"] for finding in found) == 3
    assert {finding["model"] for finding in found} == {None}
    grouped = results(
        asked, COMPLETIONS, query="&group_by=model&group_by[]=project_id&group_by=batch"
    )
    assert {(item["model"], item["project_id"], item["batch"]) for item in grouped} == {
        ("api", "search", False), ("pair", "ads", False), ("own", "ads", False),
    }  # fmt: skip
    users = results(asked, COMPLETIONS, query="&group_by=user_id&user_ids=ann")
    assert {(user["user_id"], user["num_model_requests"]) for user in users} == {("ann", 2)}
    tiers = results(asked, COMPLETIONS, query="&group_by=service_tier&models=api")
    assert [tier["service_tier"] for tier in tiers] == ["default"]
    assert results(asked, COMPLETIONS, query="&batch=true") == []


def test_embeddings_are_apart(asked) -> None:
    (found,) = results(asked, EMBEDDINGS, query="&group_by=api_key_id")
    (row,) = asked.rows("kind = 'embedding'")
    assert found["object"] == "organization.usage.embeddings.result"
    assert (found["input_tokens"], found["num_model_requests"]) == (row["input_tokens"], 1)
    assert found["api_key_id"] == row["key_id"]


@pytest.mark.parametrize(
    ("name", "unit", "kind", "count", "expected"),
    [
        ("moderations", "input_tokens", "moderation", {"input": 9}, 9),
        ("images", "images", "image_generation", {"pictures": 3}, 3),
        ("images", "images", "image_edit", {"pictures": 2}, 2),
        ("audio_speeches", "characters", "speech", {"characters": 70}, 70),
        ("audio_transcriptions", "seconds", "transcription", {"audio_ms": 2_100}, 3),
    ],
)
def test_each_page_counts_the_unit_of_its_kinds(asked, name, unit, kind, count, expected) -> None:
    team = f"{kind}s"
    opened = AttemptOpened(
        attempt_id=f"{kind}.1", request_id=kind, attempt_no=1,
        opened_us=time.time_ns() // 1000 - 10_000_000, key_id="k", user_id=None, team_id=team,
        org_id="acme", kind=kind, stream=False, model="m", target="alpha/m", backend="api",
        pool=None, engine=None, provider="alpha", upstream_model="m", simulated=True,
        policy="plain", policy_version="1", reason="cheapest", spill_reason=None,
        price_version=None, bound_pusd=10, prompt_tokens_estimate=1, ttft_predicted_us=None,
    )  # fmt: skip
    settled = AttemptSettled(
        attempt_id=f"{kind}.1", settled_us=time.time_ns() // 1000, status="finished",
        http_status=200, tokens=TokenCounts(**count), basis="reported", cost_pusd=7,
        ttft_us=1, duration_us=2,
    )  # fmt: skip
    repository = LedgerRepository(asked.database, host="elsewhere")
    repository.import_records([opened, settled], journal="history", at_us=1)
    (found,) = results(asked, f"/v1/organization/usage/{name}", query=f"&project_ids={team}")
    assert found["object"] == f"organization.usage.{name}.result"
    assert (found[unit], found["num_model_requests"]) == (expected, 1)
    assert not results(asked, COMPLETIONS, query=f"&project_ids={team}")


def test_costs_are_exact_decimals(asked) -> None:
    rows = asked.rows("backend = 'api'")
    since = int(time.time()) - 86_400
    answer = asked.get(f"{COSTS}?start_time={since}", asked.key("everyone").token)
    assert '"value":0.' in answer.text.replace(" ", "")
    values = [
        Decimal(text.partition(",")[0])
        for text in answer.text.replace(" ", "").split('"value":')[1:]
    ]
    assert sum(values).scaleb(12) == sum(row["cost_pusd"] for row in rows) > 0
    assert {result["amount"]["currency"] for result in results(asked, COSTS)} == {"usd"}


def test_costs_by_line_item_add_up_and_can_be_picked(asked) -> None:
    found = results(asked, COSTS, query="&group_by=line_item&group_by=project_id")
    items = {finding["line_item"] for finding in found}
    assert {"alpha/m, input", "alpha/m, output"} <= items
    whole = sum(result["amount"]["value"] for result in results(asked, COSTS))
    assert sum(finding["amount"]["value"] for finding in found) == pytest.approx(whole, abs=1e-15)
    (item,) = results(
        asked, COSTS, query="&project_ids=search&line_items=alpha/m, output&group_by=line_item"
    )
    (row,) = asked.rows("model = 'api'")
    assert (item["quantity"], item["quantity_unit"]) == (row["output_tokens"], "tokens")
    (summed,) = results(asked, COSTS, query="&project_ids=search&line_items=alpha/m, output")
    assert (summed["line_item"], summed["quantity"]) == (None, None)
    assert summed["amount"] == item["amount"]


def test_a_reader_of_a_team_sees_that_team(asked) -> None:
    mine = results(asked, COMPLETIONS, "reader", "&group_by=project_id")
    assert {item["project_id"] for item in mine} == {"ads"}
    assert results(asked, COMPLETIONS, query="&group_by=project_id&project_ids=ads") == mine
    refused = asked.get(f"{COSTS}?start_time=0&project_ids=search", asked.key("reader").token)
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, "project_ids")


@pytest.mark.parametrize("path", PATHS)
def test_who_may_not_read_is_told_so(asked, path: str) -> None:
    refused = asked.get(f"{path}?start_time=0")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert "`usage`" in refused.json()["error"]["message"]
    assert asked.get(f"{path}?start_time=0", "gw_no_key").status_code == 401
    asks = asked.chat("api", asked.key("reader").token, max_tokens=2)
    assert asks.status_code == 403, "a reader is no client of models"


@pytest.mark.parametrize("path", PATHS)
def test_faults_have_openais_shape(asked, path: str) -> None:
    answer = asked.get(f"{path}?start_time=now", asked.key("everyone").token)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "start_time")
    assert set(error) == {"message", "type", "param", "code"}


def test_the_document_describes_them(asked) -> None:
    paths = asked.get("/openapi.json").json()["paths"]
    for path in PATHS:
        operation = paths[path]["get"]
        assert {"key": []} in operation["security"]
        names = [parameter["name"] for parameter in operation["parameters"]]
        assert {"start_time", "end_time", "bucket_width", "group_by", "limit", "page"} <= set(names)
        assert len(set(names)) == len(names)


def test_an_answer_that_would_be_too_large_says_what_to_do(asked, monkeypatch) -> None:
    monkeypatch.setattr("ledger.reports.usage.CELLS_LIMIT", 1)
    token = asked.key("everyone").token
    answer = asked.get(f"{COMPLETIONS}?start_time={int(time.time()) - 9_000}&group_by=model", token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "limit")
