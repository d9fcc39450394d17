"""What else programs do with OpenAI's SDK: raw answers, its helpers, pages, tasks that end."""

APPLIED_LIMIT_S = 60
LABEL = "[simulated]:"  # how every answer of the stand-in begins
LEFT = 5  # four tasks that were cancelled, and one time limit


def test_no_use_broke(uses_told: dict) -> None:
    broken = {name: seen for name, seen in uses_told.items() if "failed" in str(seen)}
    assert broken == {}


def test_raw_answers(uses_told: dict) -> None:
    lines = uses_told["lines_of_a_raw_stream"]
    assert (lines["status"], lines["first"], lines["last"]) == (200, "data: ", "data: [DONE]")
    assert lines["type"].startswith("text/event-stream")
    assert lines["request_id"].startswith("req_")
    assert uses_told["parsed_late"]["backend"] == "pool:chat/0"
    assert uses_told["raw_stream"]["text"] == uses_told["parsed_late"]["text"]
    assert uses_told["given_besides"]["status"] == 200


def test_helpers_fold_streams_and_read_documents(uses_told: dict) -> None:
    assert uses_told["structured"]["document"].keys() == {"name", "count"}
    folded = uses_told["helper_stream"]
    assert folded["document"].keys() == {"name", "count"}
    assert folded["arguments"] == ["days", "town"]
    assert "tool_calls.function.arguments.done" in folded["kinds"]
    assert uses_told["tool_loop"]["text"].startswith(LABEL)


def test_lists_are_read_page_by_page(uses_told: dict) -> None:
    seen = uses_told["pages"]
    assert (seen["files"], seen["next"], seen["batches"]) == (True, True, True)
    assert (seen["content"], seen["processed"]) == (True, "processed")
    assert seen["models"] == ["chat"]


def test_who_leaves_pays_for_what_came_and_its_client_goes_on(gateway, uses_told: dict) -> None:
    seen = uses_told["cancelled"]
    assert seen["ended"] == ["CancelledError"] * 4
    assert seen["after"].startswith(LABEL)
    assert uses_told["once_and_impatient"]["raised"].startswith("API")
    query = (
        "SELECT output_tokens FROM attempts WHERE team_id = :team AND status = 'client_gone'"
        " AND settled_us IS NOT NULL"
    )
    rows = gateway.until(
        lambda: len(found := gateway.rows(query, team=uses_told["team"])) == LEFT and found,
        APPLIED_LIMIT_S,
    )
    assert max(row["output_tokens"] for row in rows) < 4000
