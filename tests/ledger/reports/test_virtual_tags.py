"""Values of virtual tags: the first rule that holds, each attempt once, as plain rows add up."""

import random
from collections import Counter

import pytest
from sqlalchemy import text

from ledger.manual_entries import VIRTUAL_TAG, ManualEntry, enter
from ledger.reporting_zone import ReportingZone
from ledger.reports.virtual_tags import (
    UNASSIGNED,
    VirtualTagError,
    parse_tag,
    virtual_spend,
    virtual_spend_by_day,
    virtual_tags,
)
from ledger.spans import DAY_US, Scope
from ledger.sums.rollups import Rollups
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US

RULES = {
    "model": ["support: team=ads|web, model=chat", "rest: team=web", "mini: model=mini"],
    "key": ["mine: key=k1|k2", "web: team=web"],
    "tags": ["app: tag:app=a|b", "web: team=web, tag:env=prod"],
    None: ["ads: team=ads"],
}


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("product", [], "at least one"),
        ("a b", ["x: team=a"], "name: letters"),
        ("p", ["x team=a"], "rule 1, `x team=a`: write `VALUE:"),
        ("p", ["x:"], "a blank after the first colon"),
        ("p", ["", "x: team="], "rule 1, `x: team=`: `team=`: write"),
        ("p", ["x: user=a"], "`user` is none of team, model, key, tag:NAME"),
        ("p", ["x: tag:=a"], "`tag:` is none of"),
        ("p", ["x: team=a, team=b"], "`team` stands there twice"),
        ("p", [f"{UNASSIGNED}: team=a"], "choose another value"),
        ("p", ["x: model=a", "y: key=b"], "one dimension in all, not key, model"),
        ("p", ["x: team=a"] * 101, "at most 100"),
    ],
)
def test_what_is_refused_names_the_line(name: str, lines: list[str], said: str) -> None:
    with pytest.raises(VirtualTagError) as raised:
        parse_tag(name, lines)
    assert said in str(raised.value)


def test_the_first_rule_that_holds_counts() -> None:
    tag = parse_tag("p", ["a: team=x, model=m", "b: team=x|y", " "])
    assert [tag.value_of({"team": team, "model": "m"}) for team in "xyz"] == ["a", "b", UNASSIGNED]
    assert tag.value_of({"team": "x", "model": "n"}) == "b"


@pytest.fixture(params=["rows", "sums"])
def books(request: pytest.FixtureRequest, engine, opened, settled, seal_all):
    """Some hundred attempts of teams, models, keys and tags over three days, added up or not."""
    rng = random.Random(4)
    records = []
    for n in range(240):
        tags = tuple(
            (name, rng.choice(values))
            for name, values in (("app", "abc"), ("env", ("prod", "dev")))
            if rng.random() < 0.6
        )
        at_us = START_US + rng.randrange(3 * DAY_US)
        records.append(
            opened(
                n, opened_us=at_us, tags=tags, holds=(), team_id=rng.choice(("ads", "web", "ops")),
                model=rng.choice(("chat", "mini")), key_id=rng.choice(("k1", "k2", "k3")),
            )
        )  # fmt: skip
        cost = None if n % 17 == 0 else rng.randrange(10**12)
        records.append(settled(n, settled_us=at_us + 1, cost_pusd=cost))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    if request.param == "sums":
        seal_all(engine)
        while Rollups(engine).follow():
            pass
    return engine


def test_values_add_up_to_plain_sums_of_the_rows(books) -> None:
    scope = Scope(START_US, START_US + 3 * DAY_US)
    with books.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT opened_us, team_id, model, key_id, CAST(tags AS VARCHAR), cost_pusd "
                "FROM attempts"
            )
        ).all()
        for by, rules in RULES.items():
            tag = parse_tag("p", rules)
            assert tag.by == by
            wanted, by_day = Counter[str](), Counter[tuple[int, str]]()
            for opened_us, team, model, key, tags, pusd in rows:
                value = plain_value(by, team, model, key, tags or "")
                wanted[value] += int(pusd or 0)
                by_day[opened_us // DAY_US * DAY_US, value] += int(pusd or 0)
            assert len(wanted) > 1, "the control: there is something to part"
            found = virtual_spend(connection, scope, tag)
            assert {row.value: row.cost_pusd for row in found} == dict(wanted)
            assert sum(row.attempts for row in found) == len(rows) == 240
            daily = virtual_spend_by_day(connection, scope, ReportingZone(), tag)
            assert daily == dict(by_day)


def plain_value(by: str | None, team: str, model: str, key: str, tags: str) -> str:
    """The rules of `RULES` once more, as a person would write them."""
    tags = tags.replace(" ", "")
    if by is None:
        return "ads" if team == "ads" else UNASSIGNED
    if by == "model":
        if team in ("ads", "web") and model == "chat":
            return "support"
        return "rest" if team == "web" else "mini" if model == "mini" else UNASSIGNED
    if by == "key":
        return "mine" if key in ("k1", "k2") else "web" if team == "web" else UNASSIGNED
    if '"app":"a"' in tags or '"app":"b"' in tags:
        return "app"
    return "web" if team == "web" and '"env":"prod"' in tags else UNASSIGNED


def test_a_later_entry_stands_for_an_earlier_one_and_a_withdrawn_one_for_none(engine) -> None:
    with engine.begin() as connection:
        for at, says in ((1, {"rules": ["a: team=x"]}), (2, {"rules": ["b: team=x"]})):
            enter(connection, ManualEntry(0, VIRTUAL_TAG + "p", says, at, at, "ann"))
        assert virtual_tags(connection, 3)["p"].rules[0].value == "b"
        enter(connection, ManualEntry(0, VIRTUAL_TAG + "p", None, 4, 4, "ann"))
        assert virtual_tags(connection, 5) == {}
