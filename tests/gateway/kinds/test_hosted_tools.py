"""Searches and tools with fees of their own are seen; an application's own tools are none."""

import json

import pytest

from gateway.http.body import decode_members
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
