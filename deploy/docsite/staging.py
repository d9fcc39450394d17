"""Collection of the site's pages: those of `docs/`, and documents in other folders.

A document keeps its place in the repository, and its links are resolved from there. A link to
another page leads to that page on the site. Linked pictures are copied, and so are linked files of
`deploy/` that an operator installs (rules, boards, SQL). A link to another file of the repository
becomes the file's path as code. "decision 7" becomes a link to that record. A broken link is an
error.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES_FOLDER: Final = ROOT / "build" / "site-pages"
# Documents outside `docs/`, by their path on the site.
ELSEWHERE: Final[Mapping[str, str]] = {
    "explanation/architecture.md": "ARCHITECTURE.md",
    "explanation/benchmarks.md": "tests/bench/README.md",
    "explanation/gateway.md": "gateway/README.md",
    "explanation/ledger.md": "ledger/README.md",
    "how-to/helm.md": "deploy/helm/README.md",
    "reference/changelog.md": "CHANGELOG.md",
}
# Records of past changes: the site's search ranks them after pages for users.
RECORDS: Final = re.compile(r"explanation/benchmarks\.md|reference/changelog\.md|decisions/.+")
# Records of single decisions: their index links to them, the navigation does not.
UNLISTED: Final = re.compile(r"decisions/\d.+")
_DECISION: Final = re.compile(r"(?<!\[)\bdecision (\d+)\b")
_LAST: Final = "---\nsearch:\n  boost: 0.1\n---\n\n"
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE: Final = re.compile(r"^(\s*)```")
_BLOCK_MARK: Final = re.compile(r"^ *<!-- block: .*-->\n", re.MULTILINE)
_HEADING: Final = re.compile(r"^(#{1,6}) (.+?)\s*$")
_PICTURES: Final = (".png", ".svg")
_INSTALLED: Final = (".json", ".sql", ".yaml", ".yml")


class SiteError(Exception):
    """A link of a page to a file or heading that does not exist."""


class SitePages:
    """The pages by their path on the site, with the pictures and files that they link to."""

    def __init__(self, root: Path = ROOT, elsewhere: Mapping[str, str] = ELSEWHERE) -> None:
        self._root = root
        docs = sorted((root / "docs").rglob("*.md"))
        self.sources = {path.relative_to(root / "docs").as_posix(): path for path in docs}
        self.sources |= {place: root / name for place, name in elsewhere.items()}
        self._places = {path: place for place, path in self.sources.items()}
        self._decisions = {
            int(PurePosixPath(place).name[:4]): place
            for place in self.sources
            if UNLISTED.fullmatch(place)
        }
        self.pictures: dict[str, Path] = {}
        self.files: dict[str, Path] = {}

    def page(self, place: str) -> str:
        """Return the text of a page with the site's links. Raises `SiteError` for a broken link."""
        source = self.sources[place]
        text = _BLOCK_MARK.sub("", source.read_text(encoding="utf-8"))
        lines, fenced = [], False
        for line in text.splitlines():
            if _FENCE.match(line):
                fenced = not fenced
                lines.append(line.replace("```mermaid", "```text"))
            else:
                lines.append(line if fenced else self._with_links(line, place, source))
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Write every page for MkDocs, with the linked pictures and files."""
        for place in self.sources:
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            rank = _LAST if RECORDS.fullmatch(place) else ""
            path.write_text(rank + self.page(place), encoding="utf-8")
        for place, source in (self.pictures | self.files).items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read_bytes())

    def _with_links(self, line: str, place: str, source: Path) -> str:
        kept: list[str] = []  # inline code, which contains no links
        hidden = re.sub(r"`[^`]*`", lambda match: _hide(match[0], kept), line)
        linked = _LINK.sub(lambda match: self._link(match, place, source, kept), hidden)
        linked = _DECISION.sub(lambda match: self._decision_link(match, place), linked)
        return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], linked)

    def _link(self, found: re.Match[str], place: str, source: Path, kept: list[str]) -> str:
        picture, label, address = found.groups()
        if re.match(r"[a-z]+:", address):
            return found[0]
        name, _, anchor = address.partition("#")
        if _LINK.search(label):  # a picture inside a link
            label = _LINK.sub(lambda inner: self._link(inner, place, source, kept), label)
        if not name:
            self._check_anchor(place, anchor, address)
            return f"{picture}[{label}](#{anchor})"
        target = Path(normpath(source.parent / name))
        if not target.exists():
            raise SiteError(f"{source.relative_to(self._root)}: {address} leads nowhere")
        if target in self._places:
            other = self._places[target]
            self._check_anchor(other, anchor, f"{place}: {address}")
            end = f"#{anchor}" if anchor else ""
            return f"[{label}]({_relative(place, other)}{end})"
        if target.suffix in _PICTURES:
            other = f"pictures/{target.name}"
            self.pictures[other] = target
            return f"{picture}[{label}]({_relative(place, other)})"
        words = re.sub("\x00(\\d+)\x00", lambda hidden: kept[int(hidden[1])], label)
        deployed = self._root / "deploy"
        if target.suffix in _INSTALLED and target.is_relative_to(deployed):
            other = f"files/{target.relative_to(deployed).as_posix()}"
            self.files[other] = target
            return f"[{words}]({_relative(place, other)})"
        path = target.relative_to(self._root).as_posix()
        return f"`{path}`" if words.strip("`") == path else f"{words} (`{path}`)"

    def _decision_link(self, found: re.Match[str], place: str) -> str:
        record = self._decisions.get(int(found[1]))
        return f"[{found[0]}]({_relative(place, record)})" if record else found[0]

    def _check_anchor(self, place: str, anchor: str, address: str) -> None:
        if anchor and anchor not in anchors(self.sources[place].read_text(encoding="utf-8")):
            raise SiteError(f"{address}: {place} has no heading #{anchor}")


def anchors(text: str) -> set[str]:
    """Return the anchors that MkDocs makes of a page's headings."""
    found: set[str] = set()
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.match(line)
        if heading:
            words = re.sub(r"[^\w\s-]", "", heading[2].replace("`", "")).strip().lower()
            slug, number = re.sub(r"[-\s]+", "-", words), 1
            base = slug
            while slug in found:
                slug, number = f"{base}_{number}", number + 1
            found.add(slug)
    return found


def title_of(text: str) -> str:
    """Return a page's first heading."""
    return next(found[2] for line in text.splitlines() if (found := _HEADING.match(line)))


def navigation(root: Path = ROOT) -> list[tuple[str, list[str]]]:
    """Return the sections of the navigation, each with its pages in order."""
    entries: list[dict[str, Any]] = yaml.safe_load((root / "mkdocs.yml").read_text("utf-8"))["nav"]
    return [
        (part, [pages] if isinstance(pages, str) else list(pages))
        for entry in entries
        for part, pages in entry.items()
    ]


def _hide(code: str, kept: list[str]) -> str:
    kept.append(code)
    return f"\x00{len(kept) - 1}\x00"


def _relative(place: str, other: str) -> str:
    return relpath(other, PurePosixPath(place).parent.as_posix())
