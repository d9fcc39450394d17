"""Models that retire: told on every answer until their day, then refused with their successor."""

from datetime import UTC, date, datetime, timedelta

import pytest

from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.errors import RequestError
from gateway.request.model_retirement import find_retirement, served_models

FILE = """
models:
  old:
    targets: ["openai/a"]
    retirement: {retires: 2027-01-31, announced: 2026-11-01, successor: new}
  new: {targets: ["openai/b"]}
  name: {same_as: old, retirement: {retires: 2026-12-31}}
  other: {same_as: old}
providers: {openai: {}}
"""
DAY_US = 86_400 * 10**6
ENDS_US = 1_801_353_600 * 10**6  # 2027-01-31T00:00:00Z


@pytest.fixture(scope="module")
def settings():
    found = draft_settings(read_document(FILE)).settings
    assert found is not None
    return found


def test_headers_are_those_of_the_standards(settings) -> None:
    assert dict(find_retirement(settings, "old").headers) == {
        b"deprecation": b"@1793491200",
        b"sunset": b"Sun, 31 Jan 2027 00:00:00 GMT",
        b"link": b'</v1/models/new>; rel="successor-version"',
    }
    assert find_retirement(settings, "new") is None


def test_the_first_end_along_aliases_counts(settings) -> None:
    assert find_retirement(settings, "name").retires == date(2026, 12, 31)
    assert find_retirement(settings, "other").retires == date(2027, 1, 31)


def test_a_model_is_served_until_its_day_begins(settings) -> None:
    found = find_retirement(settings, "old")
    found.check_served(ENDS_US - 1)
    with pytest.raises(RequestError, match=r"retired on 2027-01-31\. Use `new`") as refused:
        found.check_served(ENDS_US)
    assert refused.value.row.status == 404
    names = ["old", "new", "name", "other"]
    assert served_models(settings, names, ENDS_US - DAY_US * 32) == names
    assert served_models(settings, names, ENDS_US - 1) == ["old", "new", "other"]
    assert served_models(settings, names, ENDS_US) == ["new"]


def test_clients_are_told_and_then_refused(run_stack) -> None:
    today = datetime.now(UTC).date()
    soon, past = today + timedelta(days=40), today - timedelta(days=1)

    def adjust(found, _ports) -> None:
        models = found["models"]
        models["gpt-4o"]["retirement"] = {"retires": str(soon), "successor": "chat"}
        models["late"]["retirement"] = {"retires": str(past), "successor": "chat"}

    with run_stack(adjust=adjust) as stack:
        for members in ({}, {"stream": True}):
            told = stack.chat("gpt-4o", max_tokens=2, **members)
            assert told.status_code == 200
            assert f"{soon:%d %b %Y} 00:00:00 GMT" in told.headers["sunset"]
            assert told.headers["deprecation"].startswith("@")
            assert told.headers["link"] == '</v1/models/chat>; rel="successor-version"'
        assert "sunset" not in stack.chat("chat", max_tokens=2).headers
        refused = stack.chat("late", max_tokens=2)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
        assert f"retired on {past}. Use `chat`." in refused.json()["error"]["message"]
        said = {"model": "late", "messages": [{"role": "user", "content": "hi"}]}
        assert stack.post("/v1/messages/count_tokens", said).status_code == 404
        for members in ({"stream": True}, {"background": True}):
            asked = {"model": "late", "input": "hi", **members}
            assert stack.post("/v1/responses", asked).status_code == 404, members
        assert stack.get("/v1/models/late").status_code == 404
        cards = {card["id"]: card["breakeven"] for card in stack.get("/v1/models").json()["data"]}
        assert "late" not in cards
        assert (cards["gpt-4o"]["retires"], cards["gpt-4o"]["successor"]) == (str(soon), "chat")
        assert "retires" not in cards["chat"]
