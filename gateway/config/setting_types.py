"""Descriptions of settings' types from their JSON Schema: values, bounds, format."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "array": "list",
    "object": "mapping",
}
_FORMS: Final = {"date": "day, `YYYY-MM-DD`", "path": "path", "uri": "URL"}
_PATTERNS: Final = {
    r"^[A-Za-z_][A-Za-z0-9_]*$": "name of an environment variable",
    r"^https?://[\w.:\[\]-]+(/[!-;=?-~]*)?$": "URL",
}
_BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"),
)


def describe_type(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return one line for a field's schema; `definitions` are the `$defs` it may refer to."""
    return " or ".join(dict.fromkeys(_alternatives(node, definitions)))


def _alternatives(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in node:
        yield from _alternatives(definitions[node["$ref"].rpartition("/")[2]], definitions)
        return
    choices = [*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]
    if choices:
        wide = {choice.get("type") for choice in choices}
        for choice in choices:
            plain = "enum" not in choice and "const" not in choice
            repeats = (
                plain and choice.get("type") == "string" and "number" in wide
            )  # exact, as text
            if choice.get("type") != "null" and not repeats:
                yield from _alternatives(choice, definitions)
        return
    yield _phrase(node, definitions)


def _phrase(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    kind = str(node.get("type", ""))
    words = _FORMS.get(str(node.get("format")), _WORDS.get(kind, "any value"))
    if kind == "array" and isinstance(node.get("items"), Mapping):
        words = f"list of: {describe_type(node['items'], definitions)}"
    if kind == "object" and isinstance(node.get("additionalProperties"), Mapping):
        words = f"mapping of names to: {describe_type(node['additionalProperties'], definitions)}"
    if kind == "object" and "properties" in node:
        words = f"mapping with {', '.join(f'`{name}`' for name in node['properties'])}"
    bounds = [phrase.format(node[name]) for name, phrase in _BOUNDS if name in node]
    if "pattern" in node and kind == "string":
        pattern = str(node["pattern"])
        words = _PATTERNS.get(pattern, f"{words} that matches `{pattern}`")
    return ", ".join([words, *bounds])
