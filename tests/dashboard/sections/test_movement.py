"""Below the spending: what moved is the books' difference, tags are read when asked for."""

import re

import pytest
from sqlalchemy import create_engine, insert, text

from dashboard.formatting import money
from ledger.orm.tables import RetirementRow
from ledger.queries.reads import DAY_US


def spent(url: str, team: str, start_us: int, end_us: int) -> int:
    engine = create_engine(url)
    statement = (
        "SELECT coalesce(sum(cost_pusd), 0) FROM attempts WHERE team_id = :team"
        " AND opened_us >= :start AND opened_us < :end"
    )
    with engine.connect() as connection:
        asked = {"team": team, "start": start_us, "end": end_us}
        found = connection.execute(text(statement), asked).scalar_one()
    engine.dispose()
    return int(found)


def test_movers_are_the_difference_to_the_period_before(page, books, text_of) -> None:
    filled = books(peak=6.0, days=16)
    shown = text_of(page("spend", filled.url, period="7 d"))
    named = re.search(
        r"The most: (\w+), from \S+ to (\S+)\.", shown.replace("\\", "")
    )  # as markdown
    start = (filled.now_us - 7 * DAY_US) // (3600 * 10**6) * 3600 * 10**6
    now = spent(filled.url, named.group(1), start, filled.now_us + DAY_US)
    assert named.group(2) == money(now)


def test_the_first_period_has_nothing_to_compare_with(page, month, text_of) -> None:
    assert "nothing to compare with" in text_of(page("spend", month.url))


def test_what_was_retired_before_keys_were_added_up_is_no_saving(page, books, text_of) -> None:
    """Sums by key begin with an upgrade, and rows older than that may be gone: too little stood."""
    filled = books(peak=4.0, days=16)
    gone_us = filled.now_us - 10 * DAY_US
    engine = create_engine(filled.url)
    with engine.begin() as connection:
        connection.execute(text(f"DELETE FROM attempts WHERE opened_us < {gone_us}"))
        connection.execute(insert(RetirementRow).values(
            number=1, part=0, ends=True, retired_us=filled.now_us, until_us=gone_us, attempts=1,
            posted=1, input_tokens=1, output_tokens=1, engine_us=0, cost_pusd=1, gone=b"",
            left_rows=0, left=b"", chain=b"",
        ))  # fmt: skip
    engine.dispose()
    test = page("spend", filled.url, period="7 d")
    test.segmented_control(key="moved-by").set_value("key").run()
    assert not test.exception
    assert "before were retired before they were added up by key" in text_of(test)
    test = page("spend", filled.url, period="24 h")
    test.segmented_control(key="moved-by").set_value("key").run()
    assert "were retired" not in text_of(test), "the control: the day before is whole"


@pytest.mark.long
def test_a_day_far_above_the_usual_is_named(page, books, text_of) -> None:
    filled = books(peak=4.0, days=12)
    engine = create_engine(filled.url)
    day = filled.now_us // DAY_US * DAY_US - 3 * DAY_US
    with engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE attempts SET cost_pusd = 9000000000000 WHERE team_id = 'finance'"
                " AND opened_us >= :a AND opened_us < :b"
            ),
            {"a": day, "b": day + DAY_US},
        )
    engine.dispose()
    shown = text_of(page("spend", filled.url))
    assert re.search(r"finance, \d\d \w+\s+\$", shown)


def test_tags_are_added_up_when_asked_for(page, month, text_of) -> None:
    test = page("spend", month.url)
    test.segmented_control(key="moved-by").set_value("backend")
    test.toggle(key="tags").set_value(True).run()
    assert not test.exception
    assert "No request of this period carries a tag" in text_of(test)
    assert "Mean spending of each hour of the week" in text_of(test)


def test_unit_costs_stand_on_both_bases(page, month, text_of) -> None:
    shown = text_of(page("spend", month.url))
    for basis in ("input + output", "output only"):
        assert f"Cost per 1M tokens, {basis}" in shown
    assert "never to compare" in shown


def test_a_period_of_which_the_books_have_little_is_no_comparison(page, books, text_of) -> None:
    """Books of ten days: of the seven days before the last seven they have three."""
    shown = text_of(page("spend", books(peak=4.0, days=10).url, period="7 d"))
    assert re.search(r"The books have 4\d % of the 7 days before: too little", shown)
    assert "The most:" not in shown


def test_days_before_the_books_are_not_days_without_spending(page, books, text_of) -> None:
    """Five days of books in a period of thirty: every day stood far above a usual one of $0."""
    url = books(peak=4.0, days=5).url
    shown = text_of(page("spend", url))
    assert "Far above their usual day" not in shown
    assert "The books have fewer than 7 whole days of this period" in shown
    begun = re.search(r"The books begin at \d\d \w+ \d{4} \d\d:\d\d UTC: they have (\S+) of", shown)
    assert begun is not None
    assert 5 * 24 - 12 < float(begun[1]) <= 5 * 24 + 1
    assert "The books begin at" in text_of(page("answer", url, team="finance"))
    assert "The books begin at" not in text_of(page("spend", url, period="24 h"))
