"""What a condition compares that can never be equal is told when it is read."""

import pytest

from gateway.config.conditions import Condition


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stream == "true"', '`stream` is true or false, and never equal to `"true"`'),
        ("tags.level == 1 && stream", "`tags.level` is text, and never equal to `1`"),
        ('1 != tags["level"]', '`tags["level"]` is text'),
        ("team == true", "`team` is text"),
        ("prompt_tokens == '5'", "`prompt_tokens` is a number"),
        ('features == "tools"', "`features` is a list"),
        ('kind == "image"', "there is no kind `image`: chat, completion"),
        ('"tool" in features', "there is no feature `tool`: tools, json_schema"),
        ("has(tags.cost) && tags.cost > 5", "tags are text"),
        ('"cost" in tags && tags["cost"] >= 1', "tags are text"),
    ],
)
def test_what_is_for_nobody_is_told(text, said):
    (doubt,) = Condition(text).doubts
    assert said in doubt


@pytest.mark.parametrize(
    "text",
    [
        'team == "stream == 1"', 'model == "kind" && n == 1', 'features == ["tools"]',
        "size(features) == 0 && size(team) == 4", "has(tags.a) == true", 'tags.a == "1"',
        'team.startsWith("a") == true', '"x" in tags', 'tags.a in ["1"] && tags["b"] < "2"',
    ],
)  # fmt: skip
def test_what_may_be_for_somebody_is_not(text):
    assert Condition(text).doubts == ()
