"""Conditions: a small, bounded part of CEL; what is wrong is said when they are read."""

from pathlib import Path

import pytest

from gateway.config.conditions import (
    FACTS,
    LONGEST,
    Condition,
    ConditionError,
    ConditionInput,
    ConditionUndecided,
)

TAGGED = ConditionInput(
    model="chat", team="search", org="acme", user="ann", tags={"app": "web"}, stream=True,
    prompt_tokens=9000, max_tokens=200, features=("tools",),
)  # fmt: skip
PLAIN = ConditionInput(model="code", team="ads")


@pytest.mark.parametrize(
    ("text", "tagged", "plain"),
    [
        ("prompt_tokens > 8000", True, False),
        ('model == "chat" && team in ["search", "ads"]', True, False),
        ('"tools" in features || max_tokens >= 1000', True, False),
        ('has(tags.app) && tags.app == "web"', True, False),
        ('"app" in tags && tags["app"] != "web"', False, False),
        ('!stream && user == ""', False, True),
        ('model.startsWith("co") || org.contains("zz") || team.endsWith("zz")', False, True),
        ("size(features) == 0", False, True),
        ('kind == "chat" && n == 1 && key == ""', True, True),
        ("true", True, True),
    ],
)
def test_what_can_be_said(text, tagged, plain):
    condition = Condition(text)
    assert (condition.evaluate(TAGGED), condition.evaluate(PLAIN)) == (tagged, plain)
    assert not condition.may_fail
    assert condition.doubts == ()


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("max_tokens < 200", True),
        ("stream && max_tokens<=200", True),
        ("200 > max_tokens", True),
        ("max_tokens > 0 && max_tokens < 200", False),
        ("max_tokens != 0 && 200 >= max_tokens", False),
        ("max_tokens >= 200", False),
        ("prompt_tokens < 200", False),
    ],
)
def test_a_low_limit_that_counts_requests_without_one_is_told(text, counted):
    condition = Condition(text)
    assert any("sets no limit" in doubt for doubt in condition.doubts) is counted
    if text.startswith("max_tokens"):
        assert condition.evaluate(PLAIN) is counted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt_tokens >> 100", "at 1:16: `>` is not supported: join conditions with `&&`"),
        ("team == 'x' and stream", "at 1:13: `and` is not supported"),
        (
            "not stream",
            "at 1:5: `stream` is not supported: join conditions with `&&` and `||`",
        ),
        ("prompt_tokens > 10k", "at 1:19: `k` is not supported"),
        ("team = 'x'", "at 1:6: write `==`, not `=`"),
        ('model == "a" & stream', "at 1:14: write `&&`, not `&`"),
        ("team == 'x", "at 1:9: a quotation mark is not closed"),
        ("(team == 'x'", "at 1:13: a `)` is missing"),
        ("stream;", "at 1:7: `;` has no meaning here"),
        ("prompt_tokens >", "at 1:16: the condition is incomplete: a value must follow"),
        ('team == "x" &&', "at 1:15: the condition is incomplete: a value must follow"),
        ("prompt_tokens > 99999999999999999999", "at 1:17: the number is too large"),
        ("", "at 1:1"),
        ("prompt_tokens", "must be true or false, not int"),
        ('"yes"', "must be true or false, not str"),
        ('prompt_tokens > "a"', "compares what cannot be compared: prompt_tokens, max_tokens"),
        ('"a" in team', "compares what cannot be compared"),
        ("tenant == 1", "has no fact `tenant`; facts are model, team"),
        ('__import__("os").system("x") == 0', "is not supported"),
        ("[1, 2].all(x, x > 0)", "loops"),
        ("[1, 2].exists_one(n, n > 0)", "loops"),
        ('["a"].map(model, model) == []', "`+` is not supported"),
        ("[1].filter(n, n > 0) == [1]", "loops"),
        ("stream ? true : false", "loops"),
        ('model.matches("(a*)*b")', "`matches` is not supported"),
        ("prompt_tokens + 1 > 2", "`+` is not supported"),
        ("prompt_tokens * 99999999 > 2", "`*` is not supported"),
        ("1 / 0 == 1", "`/` is not supported"),
        ("cel.bind(n, 1, n == 1)", "`bind` is not supported"),
        (
            'timestamp("2026-01-01T00:00:00Z") < timestamp("2027-01-01T00:00:00Z")',
            "is not supported",
        ),
        ("!" * LONGEST + "true", f"longer than {LONGEST}"),
        ("(" * 400 + "true" + ")" * 400, "at 1:97: it is nested too deep"),
        ("[" * 400 + "]" * 400 + " == []", "at 1:"),
        ('model == "\ud800"', "surrogates"),
    ],
)
def test_what_is_refused_when_it_is_read(text, said):
    with pytest.raises(ConditionError) as refused:
        Condition(text)
    assert said in str(refused.value)


def test_as_long_as_it_may_be_it_is_read_and_told():
    assert Condition("!" * (LONGEST - 4) + "true").evaluate(PLAIN)
    assert Condition("||".join(["stream"] * 110)).evaluate(TAGGED)


def test_a_tag_that_a_key_lacks_leaves_it_undecided():
    condition = Condition('tags.app == "web"')
    assert condition.may_fail
    assert condition.evaluate(TAGGED)
    with pytest.raises(ConditionUndecided):
        condition.evaluate(PLAIN)


def test_every_fact_can_be_asked():
    for name in FACTS:
        assert Condition(f"{name} == {name}").evaluate(TAGGED)


def test_nothing_from_outside_grows_a_condition():
    """The longest that a client may send of anything, asked for as often as there is room."""
    wide = ConditionInput(
        model="m" * 256, team="t" * 200, tags={f"k{i}": "v" * 200 for i in range(64)}
    )
    assert not Condition("||".join(['model.contains("x")'] * 45)).evaluate(wide)
    assert not Condition("||".join(['"z" in tags'] * 70)).evaluate(wide)


def test_the_page_names_every_fact():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "policies.md").read_text("utf-8")
    table = page.partition("| fact |")[2].partition("\n\n")[0]
    assert [fact for fact in FACTS if f"`{fact}`" not in table] == []
