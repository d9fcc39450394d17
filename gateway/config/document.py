"""YAML document with the lines of its keys, and checks that YAML itself lacks.

PyYAML silently keeps the last of two equal keys, raises on invalid dates, and reads `80:80` as a
base-60 number. Here repeated keys are faults, and such values stay text for the schema to check.
"""

from dataclasses import dataclass
from typing import Any

import yaml
from yaml.reader import ReaderError

from gateway.config.faults import ConfigFault, Place
from ledger.yamltext import BoundedLoader

_NO_NAME = "a key must be a name, not a list or a mapping: put `{...}` and `[...]` into quotes"


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """Parsed document; `value` is None for invalid YAML, and `faults` says why."""

    value: Any
    faults: tuple[ConfigFault, ...]
    root: yaml.Node | None = None

    def line(self, place: Place) -> int | None:
        """Return the line of the deepest part of the place that exists in the document."""
        node, line = self.root, None
        for part in place:
            found = _child(node, part)
            if found is None:
                break
            line, node = found
        return line


def read_document(text: str) -> ConfigDocument:
    try:
        loader = _Loader(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        words = f"not YAML: the character #x{error.character:04x} is not allowed"
        return ConfigDocument(None, (ConfigFault((), words, line=line),))
    try:
        root = loader.get_single_node()
        repeated = [] if root is None else _repeated_keys(root)  # before YAML merges are expanded
        value = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        return ConfigDocument(None, (_not_yaml(error, text),))
    if value is not None and not isinstance(value, dict):
        fault = ConfigFault((), "the document must be a mapping: `key: value` lines", line=1)
        return ConfigDocument(None, (fault,))
    return ConfigDocument(value or {}, tuple(repeated), root)


class _Loader(BoundedLoader):
    """YAML loader that keeps dates and ambiguous numbers as text."""


def _scalar_as_written(loader: _Loader, node: yaml.ScalarNode) -> Any:
    kind = node.tag.rpartition(":")[2]
    if kind != "timestamp" and ":" in node.value:
        return node.value
    try:
        return getattr(yaml.SafeLoader, f"construct_yaml_{kind}")(loader, node)
    except ValueError:
        return node.value


for _kind in ("timestamp", "int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _scalar_as_written)


def _not_yaml(error: yaml.MarkedYAMLError, text: str) -> ConfigFault:
    mark = error.problem_mark or error.context_mark
    words = " ".join(part for part in (error.context, error.problem) if part)
    lines = text.splitlines()
    if mark is None or not lines:
        return ConfigFault((), f"not YAML: {words}")
    line = min(mark.line, len(lines) - 1)  # a missing end is reported after the last line
    tab = lines[line][mark.column : mark.column + 1] == "\t"
    hint = "; indent with blanks, not with tabs" if tab else ""
    return ConfigFault((), f"not YAML: {words}{hint}", line=line + 1)


def _repeated_keys(root: yaml.Node) -> list[ConfigFault]:
    """Return faults of repeated keys and of keys that are not names, which are removed.

    Each node is visited once, even if it is referenced several times.
    """
    faults: list[ConfigFault] = []
    seen: set[int] = set()
    waiting: list[tuple[yaml.Node, Place]] = [(root, ())]
    while waiting:
        node, place = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(item, (*place, index)) for index, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            stated = node.value
            node.value = [pair for pair in stated if isinstance(pair[0], yaml.ScalarNode)]
            for key, value in stated:
                if not isinstance(key, yaml.ScalarNode):  # removed: hides all other faults
                    faults.append(ConfigFault(place, _NO_NAME, line=key.start_mark.line + 1))
                    continue
                here, line = (*place, key.value), key.start_mark.line + 1
                if key.value in first and key.value != "<<":
                    words = f"stated twice, first in line {first[key.value]}; keep one of them"
                    faults.append(ConfigFault(here, words, line=line))
                first.setdefault(key.value, line)
                waiting.append((value, here))
    return faults


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    """Return the line and value of a key or item; of repeated keys, the last."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item = node.value[part]
        return item.start_mark.line + 1, item
    return None
