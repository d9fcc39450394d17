"""Searches and tools with fees of their own are seen; an application's own tools are none."""

import json

import pytest

from gateway.http.body import decode_members
from gateway.kinds import hosted_tools
from gateway.kinds.hosted_tools import requesting_member

FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def found(**members) -> str | None:
    return requesting_member(decode_members(json.dumps(members).encode()))


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ({"web_search_options": {}}, "web_search_options"),
        ({"web_search_options": {"search_context_size": "high"}}, "web_search_options"),
        ({"search_parameters": {"mode": "on"}}, "search_parameters"),
        ({"search_parameters": {"enable": False}}, "search_parameters"),
        ({"web_search_options": {"mode": "off"}}, "web_search_options"),
        ({"web_search": {"enable": 0}}, "web_search"),
        ({"plugins": [{"id": "web"}]}, "plugins"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools"),
        ({"tools": [FUNCTION, {"type": "code_interpreter"}]}, "tools"),
        ({"tools": [5, {"type": "web_search"}]}, "tools"),
        ({"tools": {"type": "web_search"}}, "tools"),
        ({"tools": [{"google_search": {}}]}, "tools"),
        ({"tools": [FUNCTION, {"googleSearch": {}}]}, "tools"),
        ({"tools": [{"type": "function", "googleSearch": {}}]}, "tools"),
        ({"tools": [{**FUNCTION, "urlContext": {}}]}, "tools"),
        ({"tools": [{"type": "custom", "anything": {}}]}, "tools"),
        ({"tools": [{"Type": "web_search", "type": "function", "name": "x"}]}, "tools"),
        ({"functions": [{"googleSearch": {}}]}, "functions"),
        ({"functions": [{"name": "f"}, {"type": "web_search"}]}, "functions"),
        ({"enable_code_interpreter": True}, "enable_code_interpreter"),
        ({"enable_enhancement": True}, "enable_enhancement"),
        ({"search_options": {"forced_search": True}}, "search_options"),
        ({"container": {"skills": [{"skill_id": "pptx"}]}}, "container"),
        ({"data_sources": [{"type": "azure_search"}]}, "data_sources"),
        ({"enable_search": True}, "enable_search"),
        ({"web_search": {"enable": True}}, "web_search"),
        ({"connectors": [{"id": "web-search"}]}, "connectors"),
        ({"compound_custom": {"tools": {"enabled_tools": ["web_search"]}}}, "compound_custom"),
    ],
)
def test_what_has_a_fee_is_seen(members, name) -> None:
    assert found(**members) == name


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"web_search_options": None, "plugins": [], "tools": None},
        {"tools": [FUNCTION, {"type": "custom", "custom": {"name": "c"}}]},
        {"tools": [{"function": {"name": "f"}}, {"type": None}]},
        {"tools": [{**FUNCTION, "defer_loading": True}]},
        {"tools": "none"},
        {"functions": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]},
        {"functions": []},
        {"container": "", "enable_code_interpreter": False},
        {"enable_search": False},
        {"enable_search": 0},
        {"web_search": {"enable": False}},
        {"search_parameters": {"mode": "off"}},
        {"tools": []},
    ],
)
def test_an_applications_own_tools_have_none(members) -> None:
    assert found(**members) is None


def test_escapes_hide_nothing() -> None:
    assert (
        requesting_member(decode_members(b'{"tools":[{"typ\\u0065":"web\\u005fsearch"}]}'))
        == "tools"
    )


TWICE = (
    b'{"type": "web_search", "type": "function", "name": "x"}',
    b'{"type":"web_search","type":"function","name":"x"}',
    b'{"typ\\u0065": "web_search", "type": "function", "name": "x"}',
)


@pytest.mark.parametrize("tool", TWICE)
@pytest.mark.parametrize("layout", [b"[%b]", b"[\n  %b\n]", b'[{"name": "a"}, %b]'])
def test_of_a_type_that_is_there_twice_nobody_knows_which_counts(tool, layout) -> None:
    assert requesting_member(decode_members(b'{"tools": %b}' % (layout % tool))) == "tools"


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_layout_makes_no_tool_suspect(indent, separators) -> None:
    tools = [FUNCTION, {"type": "function", "name": "caf\u00e9", "strict": True}]
    for ascii_only in (True, False):
        text = json.dumps(tools, indent=indent, separators=separators, ensure_ascii=ascii_only)
        assert requesting_member(decode_members(f'{{"tools": {text}}}'.encode())) is None


@pytest.mark.parametrize("tools", [[FUNCTION], [FUNCTION] * 3])
def test_tools_in_the_usual_layouts_are_read_once(monkeypatch, tools) -> None:
    """The hot path: the slower decoder is for what is unusual."""
    monkeypatch.setattr(hosted_tools.json, "loads", None)
    for separators in ((",", ":"), (", ", ": ")):
        text = json.dumps(tools, separators=separators)
        members = decode_members(f'{{"tools": {text}}}'.encode())
        assert requesting_member(members) is None
