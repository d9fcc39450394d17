"""Prices over HTTP: a file's text is sent, a difference is approved by its word, and followed."""

import base64

import pytest

FOR = "/v1/organization/prices"
NAME = "openai/gpt-4o-mini"
DEAL = (
    "name,input_usd_per_million,output_usd_per_million,source,source_date\n"
    f"{NAME},0.12,0.48,contract 17,2026-11-01\n"
)


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("prices", scopes=("prices:apply",))


def stated(text: str = DEAL, **more) -> dict:
    content = base64.b64encode(text.encode()).decode()
    return {"source": "deal.csv", "content": content, **more}


def test_a_difference_is_seen_approved_and_stored_once(stack, finance, patiently) -> None:
    before = stack.get(f"{FOR}?name={NAME}", finance.token).json()
    assert before["book"] == "litellm"
    seen = stack.post(FOR + "/diff", stated(), finance.token).json()
    assert (seen["new_versions"], seen["entries"][0]["status"]) == (1, "changed")
    for word in ("", "0" * 32):
        answer = stack.post(FOR + "/import", stated(approves=word), finance.token)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "prices_moved")
        assert answer.json()["error"]["param"] == "approves"
    other = stated(DEAL.replace("0.12", "0.11"), approves=seen["approves"])
    assert stack.post(FOR + "/import", other, finance.token).status_code == 409
    done = stack.post(FOR + "/import", stated(approves=seen["approves"]), finance.token).json()
    assert (done["stored"], done["by"]) == (1, f"key:{finance.key_id}")
    after = stack.get(f"{FOR}?name={NAME}", finance.token).json()
    assert (after["book"], after["versions"][-1]["by"]) == ("deal.csv", f"key:{finance.key_id}")
    late = stack.post(FOR + "/import", stated(approves=seen["approves"]), finance.token)
    assert late.status_code == 409


def test_lists_and_doubts(stack, finance) -> None:
    listed = stack.get(FOR, finance.token).json()["data"]
    assert NAME in [entry["asked"] for entry in listed]
    some = stack.get(FOR + "?name=anthropic/*", finance.token).json()["data"]
    assert all(item["asked"].startswith("anthropic/") for item in some)
    checked = stack.get(FOR + "/check?everything=false", finance.token).json()
    assert checked["checked"] >= 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"source": "/etc/passwd"}, "send a file's content"),
        ({"source": "deal.csv"}, "send a file's content"),
        ({"source": "passwd", "content": ""}, "is not a CSV, YAML or JSON file"),
        (stated(f"{DEAL}{NAME},x,,,\n"), "`x` is not a number"),
        ({"source": "a.json", "content": "e30=", "read_on": "soon"}, "Invalid date `soon`"),
        ({"source": "a.csv", "content": "!"}, "The body"),
    ],
)
def test_nothing_is_read_from_a_path_and_faults_are_told(stack, finance, given, words) -> None:
    answer = stack.post(FOR + "/diff", given, finance.token)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), (
        answer.text
    )
