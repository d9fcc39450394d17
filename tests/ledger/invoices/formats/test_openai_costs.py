"""OpenAI's costs are read exactly, whole or not at all."""

import json
from datetime import date

import pytest

from ledger.invoices.files import InvoiceError, InvoiceLine, parse

DAY_S = 86_400
NOV_3_S = 1_793_664_000


def bucket(day, *results):
    return {
        "object": "bucket", "start_time": NOV_3_S + day * DAY_S,
        "end_time": NOV_3_S + (day + 1) * DAY_S, "results": list(results),
    }  # fmt: skip


def result(value, item="gpt-4o-mini-2024-07-18, input", project=None, **more):
    amount = {"value": value, "currency": "usd"}
    return {"object": "organization.costs.result", "amount": amount, "line_item": item,
            "project_id": project, **more}  # fmt: skip


def page(*buckets, more=None):
    return {"object": "page", "data": list(buckets), "has_more": more is not None,
            "next_page": more}  # fmt: skip


def test_openai_costs_are_read_exactly():
    text = json.dumps(page(bucket(0, result(0.06), result(1e-7, project="proj_1")), bucket(1)))
    found = parse(text)
    assert found.format == "openai"
    assert found.lines == (
        InvoiceLine(date(2026, 11, 3), "gpt-4o-mini-2024-07-18, input", 60_000_000_000),
        InvoiceLine(date(2026, 11, 3), "gpt-4o-mini-2024-07-18, input", 100_000, "proj_1"),
    )
    assert found.places == 7
    assert found.total_pusd == 60_000_100_000


def test_pages_come_as_a_list_or_one_a_line():
    pages = [page(bucket(0, result(1)), more="p2"), page(bucket(1, result(2)))]
    as_list, as_lines = json.dumps(pages), "\n".join(map(json.dumps, pages))
    assert parse(as_list).lines == parse(as_lines).lines
    assert [line.day.day for line in parse(as_list).lines] == [3, 4]


def test_an_answer_that_goes_on_elsewhere_is_refused():
    with pytest.raises(InvoiceError, match="page=p2"):
        parse(json.dumps(page(bucket(0, result(1)), more="p2")))


@pytest.mark.parametrize(
    ("pages", "word"),
    [
        ([page(bucket(0, result(1)), more="p"), page(bucket(0, result(1)))], "stands twice"),
        ([page(bucket(0, result(1)), more="p"), page(bucket(2, result(1)))], "next day"),
        ([page({**bucket(0, result(1)), "end_time": NOV_3_S + 7 * DAY_S})], "not a UTC day"),
    ],
)
def test_pages_that_are_given_twice_or_left_out_are_refused(pages, word):
    with pytest.raises(InvoiceError, match=word):
        parse(json.dumps(pages))


def test_what_is_no_text_is_no_item():
    (line,) = parse(json.dumps(page(bucket(0, result(1, item={"a": 1}))))).lines
    assert line.item == ""


def costs(text):
    """A page with one bucket, of JSON text."""
    start = f'{{"data": [{{"start_time": {NOV_3_S}, "results": ['
    return f"{start}{text}]}}]}}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (costs('{"amount": {"value": 1, "currency": 5}}'), "the currency is '5'"),
        (costs('{"amount": {"value": 1, "currency": ["EUR"]}}'), "the currency is 'list'"),
        (costs('{"amount": {"value": 1, "value": 2}}'), "has `value` twice"),
        (costs('{"amount": {"value": 1}, "quantity": 1e999999}'), "is more than one line can"),
        (costs('{"amount": {"value": NaN}}'), "'nan' is not an amount"),
        (costs('{"amount": {"value": 1}, "line_item": "a\\u0000"}'), "is not text"),
        (costs('{"amount": {"value": 1}, "project_id": "\\ud800"}'), "is not text"),
        (costs("1").replace(str(NOV_3_S), "1e999999999"), "a bucket has no `start_time`"),
        (costs("1").replace(str(NOV_3_S), "1.5"), "a bucket has no `start_time`"),
        ('{"data": []}\n' + "[" * 100_000, "line 2: nested too deeply"),
    ],
)
def test_costs_that_could_be_misread_are_refused(text, word):
    """Red before: most raised another error, or the last of two members counted."""
    with pytest.raises(InvoiceError, match=word):
        parse(text)
