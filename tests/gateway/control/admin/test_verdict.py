"""The verdict over HTTP: whoever reads contracts reads it; a month is a month."""

import pytest

PATH = "/v1/organization/verdict"


@pytest.mark.parametrize("query", ["", "?days=7"])
def test_who_may_read_contracts_reads_the_verdict(stack, query) -> None:
    reader = stack.key("verdict-reader" + str(len(query)), scopes=("contracts",))
    answer = stack.get(PATH + query, reader.token)
    assert answer.status_code == 200
    document = answer.json()
    assert set(document) == {"start_us", "end_us", "simulated", "coverage", "books", "verdict"}
    for pool in document["verdict"]["pools"]:
        assert set(pool["judged_from"]) == {"hours", "answers", "failures"}
    assert document["verdict"]["sentence"]
    assert {"options", "assumptions", "unknown", "pools"} <= set(document["verdict"])
    assert stack.get(PATH).status_code == 403


def test_a_month_that_is_none_is_refused(stack) -> None:
    reader = stack.key("verdict-month", scopes=("contracts",))
    answer = stack.get(PATH + "?month=2026-13", reader.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "month")
    long = stack.get(PATH + "?month=2026-01", reader.token)
    assert long.json()["verdict"]["month_hours"] == 744
