"""A choice among some tools offers these alone."""

from backends.allowed_tools import AllowedTools, allowed_tools


def function(name: str) -> dict:
    return {"type": "function", "function": {"name": name}}


def custom(name: str) -> dict:
    return {"type": "custom", "custom": {"name": name}}


TOOLS = [function("f"), function("g"), custom("h")]


def test_the_tools_that_are_named_are_left_in_their_order() -> None:
    wanted = {"mode": "required", "tools": [custom("h"), function("f"), function("none")]}
    choice = {"type": "allowed_tools", "allowed_tools": wanted}
    assert allowed_tools(TOOLS, choice) == AllowedTools([TOOLS[0], TOOLS[2]], "required")
    without = {"type": "allowed_tools", **wanted, "mode": None}
    assert allowed_tools(TOOLS, without) == AllowedTools([TOOLS[0], TOOLS[2]], "auto")


def test_another_choice_is_none_and_odd_ones_allow_nothing() -> None:
    for other in ("auto", None, function("f"), 5, []):
        assert allowed_tools(TOOLS, other) is None
    for odd in ({}, {"tools": 5}, {"tools": [5, {"function": 5}]}):
        choice = {"type": "allowed_tools", "allowed_tools": odd}
        assert allowed_tools(TOOLS, choice) == AllowedTools([], "auto")
        assert allowed_tools(None, choice) == AllowedTools([], "auto")
        assert allowed_tools([5], choice) == AllowedTools([], "auto")
