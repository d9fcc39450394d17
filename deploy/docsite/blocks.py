"""Fenced code blocks of the pages, each with its kind, so that tests can run or parse it.

A comment before a block states the kind, followed by options of its test:
`<!-- block: config save=breakeven.yaml -->`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Final, NamedTuple

# Kinds of blocks that no test runs, with what each would need. Their commands are only parsed.
NOT_RUN: Final[Mapping[str, str]] = {
    "client": "a program of somebody else's that people use by hand; tests/sdk runs these clients",
    "cluster": "a Kubernetes cluster; tests/deploy renders the chart",
    "database": "a PostgreSQL server of the house; tests/gateway/faults runs copies and restores",
    "elsewhere": "a gateway or an identity provider at another address",
    "gpu": "a GPU and minutes to hours",
    "network": "an account at a provider",
    "traffic": "recorded traffic, or an id from it",
    "upkeep": "the service manager of a host",
}
RUN: Final = "run"  # run by the ordinary tests, in one process
FIRST_HOUR: Final = frozenset({"install", "terminal", "served"})  # run by `make first-hour`
DATA: Final = frozenset({"config", "file", "litellm", "policies", "prices"})
SHELLS: Final = frozenset({"sh", "bash", "shell", "console"})
_MARK: Final = re.compile(r"^\s*<!-- block: (.*?) -->\s*$")
_FENCE: Final = re.compile(r"^(\s*)```(\S*)\s*$")


class DocBlock(NamedTuple):
    """A fenced block; `words` are the words of its comment, empty if it has none."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def kind(self) -> str:
        """Return the block's kind: the first word of its comment, or ""."""
        return self.words[0] if self.words else ""

    @property
    def place(self) -> str:
        """Return the block's page and line."""
        return f"{self.page}:{self.line}"

    def value(self, name: str) -> str | None:
        """Return the value of an option `name=value`, `None` if it is missing."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")),
                    None)  # fmt: skip


def blocks(page: str, text: str) -> Iterator[DocBlock]:
    """Yield the fenced blocks of a page."""
    words: tuple[str, ...] = ()
    opened: tuple[int, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fence, mark = _FENCE.match(line), _MARK.match(line)
        if opened is None and mark:
            words = tuple(mark[1].split())
        elif opened is None and fence:
            opened, inside = (number, fence[2]), []
        elif opened is not None and fence and not fence[2]:
            yield DocBlock(page, *opened, words, dedent("\n".join(inside)))
            opened, words = None, ()
        elif opened is not None:
            inside.append(line)
        elif line.strip():
            words = ()


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a shell block without comments. Continued lines are joined."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def calls(command: str, program: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of a program in a command, also inside `$(...)`."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for token in (*lexer, ";"):
        if token.strip("();<>|&"):
            words.append(token)
            for inner in re.findall(r"\$\(([^()]*)\)", token):  # inside quotes
                yield from calls(inner, program)
            continue
        if program in words[:1] or (program in words and "--" in words):  # `kubectl exec ... --`
            yield words[words.index(program) + 1 :]
        words = []
