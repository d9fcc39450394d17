"""A query is read as OpenAI's clients write it; what is misspelt or out of range is named."""

from itertools import pairwise

import pytest

from gateway.control.organization.pages import _COMPLETIONS, _COSTS
from gateway.control.organization.query import cursor, page_query, parameters
from gateway.errors import RequestError
from ledger.reports.usage_filters import UsageFilters

DAY_S = 86_400
NOW_S = 1_780_272_000 + 10 * DAY_S + 7  # seven seconds past a midnight
START_S = NOW_S - 7 - 10 * DAY_S


def read(*pairs: tuple[str, object], accepted=_COMPLETIONS, team: str | None = None):
    texts = [("start_time", str(START_S)), *((name, str(value)) for name, value in pairs)]
    return page_query(texts, accepted, now_s=NOW_S, team=team)


def test_a_page_has_whole_days_and_names_the_next() -> None:
    query = read(("limit", 4))
    assert [start for start, _ in query.buckets] == [START_S + n * DAY_S for n in range(4)]
    assert query.next_s == START_S + 4 * DAY_S
    second = read(("limit", 4), ("page", cursor(query.next_s)))
    assert second.start_s == query.end_s
    last = read(("limit", 4), ("page", cursor(second.next_s)))
    assert (last.next_s, last.buckets[-1]) == (None, (START_S + 10 * DAY_S, NOW_S))


def test_pages_cover_the_time_once_whatever_it_begins_with() -> None:
    found, page = [], None
    while True:
        pairs = [("bucket_width", "1h"), ("limit", 7), *([("page", page)] if page else [])]
        query = page_query(
            [("start_time", str(START_S + 1234)), ("end_time", str(START_S + 3 * DAY_S + 5)),
             *((name, str(value)) for name, value in pairs)],
            _COMPLETIONS, now_s=NOW_S, team=None,
        )  # fmt: skip
        found += query.buckets
        if query.next_s is None:
            break
        page = cursor(query.next_s)
    assert (found[0][0], found[-1][1]) == (START_S + 1234, START_S + 3 * DAY_S + 5)
    assert all(item[1] == other[0] for item, other in pairwise(found))
    assert len(found) == 3 * 24 + 1


@pytest.mark.parametrize("name", ["models", "models[]"])
def test_lists_come_in_both_spellings(name: str) -> None:
    query = read((name, "a"), (name, "b"), ("project_ids[]", "search"), ("group_by[]", "model"))
    assert query.filters == UsageFilters(teams=("search",), models=("a", "b"))
    assert query.groups == ("model",)


@pytest.mark.parametrize(
    ("pairs", "param"),
    [
        ([("model", "a")], "model"),
        ([("limit", 0)], "limit"),
        ([("limit", 32)], "limit"),
        ([("limit", "ten")], "limit"),
        ([("limit", 3), ("limit", 4)], "limit"),
        ([("bucket_width", "1w")], "bucket_width"),
        ([("end_time", START_S)], "end_time"),
        ([("end_time", 10**30)], "end_time"),
        ([("group_by", "colour")], "group_by"),
        ([("page", "page_7")], "page"),
        ([("page", "page_" + str(START_S + 1))], "page"),
        ([("page", "nonsense")], "page"),
        ([("batch", "maybe")], "batch"),
        ([("start_time", 5)], "start_time"),
    ],
)
def test_faults_name_the_parameter(pairs: list, param: str) -> None:
    with pytest.raises(RequestError) as told:
        read(*pairs)
    assert (told.value.row.status, told.value.param) == (400, param)


def test_start_time_is_needed() -> None:
    with pytest.raises(RequestError, match="start_time"):
        page_query([], _COMPLETIONS, now_s=NOW_S, team=None)


def test_costs_know_no_minutes_and_no_models() -> None:
    for pair in (("bucket_width", "1m"), ("models", "a"), ("user_ids", "u")):
        with pytest.raises(RequestError):
            read(pair, accepted=_COSTS)
    assert read(("limit", 180), ("line_items", "x, input"), accepted=_COSTS).line_items


def test_a_reader_of_one_team_may_name_only_that_one() -> None:
    assert read(("project_ids", "search"), team="search").filters.teams == ("search",)
    with pytest.raises(RequestError) as told:
        read(("project_ids", "search"), ("project_ids", "ads"), team="search")
    assert (told.value.row.status, told.value.param) == (403, "project_ids")


def test_openapi_has_what_is_accepted() -> None:
    found = {parameter["name"]: parameter for parameter in parameters(_COMPLETIONS)}
    assert found["start_time"]["required"] is True
    assert found["models"]["schema"]["type"] == "array"
    assert "batch" in found["group_by"]["schema"]["items"]["enum"]
    assert "line_items" not in found
