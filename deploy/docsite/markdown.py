"""Markdown of generated pages: tables, code, and the line with the generating command."""

from collections.abc import Iterable, Sequence

WRITTEN = "<!-- written by `python -m deploy.docsite.pages`, which `make settings` runs -->"


def head(title: str, *paragraphs: str) -> str:
    """Return the title and first paragraphs of a generated page."""
    return "\n\n".join([f"# {title}", WRITTEN, *paragraphs])


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Pipes and line breaks in cells are escaped."""
    lines = [_line(columns), "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(_line([_cell(cell) for cell in row]) for row in rows)])


def code(text: str) -> str:
    """Return the text as inline code, "" for an empty text."""
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
