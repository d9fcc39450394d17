"""A YAML loader for untrusted text, based on libyaml, with limits on depth and expansion.

Two kilobytes of brackets cost PyYAML's own scanner a second, and nested aliases expand a few lines
to as many values as memory holds. This loader limits depth and the repetition by aliases and
merges. A document beyond the limits is refused with its line before any value is created.
"""

import re
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError
from yaml.reader import Reader, ReaderError

_MARK = re.compile("\ufeff")  # of the byte order, which may only begin a text

DEEPEST = 100  # lists and mappings in each other, those that an alias stands for, too
MOST_REPEATED = 50_000  # values that aliases add to those that are written
MOST_BITS = 1024  # a float's; longer ones cannot even be printed


class BoundedLoader(Composer, yaml.CSafeLoader):
    """A bounded `yaml.SafeLoader`; subclasses may add constructors.

    Raises `ReaderError` for a character that YAML does not allow, and `ComposerError` with the line
    of what is too deep, refers to itself or is repeated too often.
    """

    def __init__(self, text: str) -> None:
        wrong = Reader.NON_PRINTABLE.search(text) or _MARK.search(text, 1)
        if wrong:
            words = "special characters are not allowed"
            raise ReaderError("<text>", wrong.start(), ord(wrong.group()), "unicode", words)
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self._depth = 0
        self._written = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # node: values, and how deep

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        self._depth += 1
        self._bounded(self._depth, event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise _composer_error("an alias must not stand for what it is in", event)
        else:
            self._written += 1
            self._sizes[id(node)] = self._size(node)
        values, depth = self._sizes[id(node)]
        self._bounded(self._depth + depth, event)
        if values > self._written + MOST_REPEATED:
            raise _composer_error(f"aliases repeat more than {MOST_REPEATED:,} values", event)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value. An invalid scalar of its tag (`!!int ""`) is refused with its line."""
        try:
            value = super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, ArithmeticError) as error:
            words = f"is no {node.tag.rpartition(':')[2]}"
            if isinstance(error, ValueError):
                words = f"{words}: {error}"
            raise ConstructorError(None, None, words, node.start_mark) from error
        if type(value) is int and value.bit_length() > MOST_BITS:
            words = f"a number of more than {MOST_BITS} bits"
            raise ConstructorError(None, None, words, node.start_mark)
        return value

    def _size(self, node: yaml.Node | None) -> tuple[int, int]:
        within: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            within = node.value
        elif isinstance(node, yaml.MappingNode):
            within = [item for pair in node.value for item in pair]
        sizes = [self._sizes[id(each_node)] for each_node in within]
        return 1 + sum(size for size, _ in sizes), 1 + max((depth for _, depth in sizes), default=0)

    @staticmethod
    def _bounded(depth: int, event: Any) -> None:
        if depth > DEEPEST:
            raise _composer_error(f"nested more than {DEEPEST} deep", event)


def _composer_error(words: str, event: Any) -> ComposerError:
    return ComposerError(None, None, words, event.start_mark)
