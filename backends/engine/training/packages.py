"""Sources of installed packages for the corpus of a model of a hundred million parameters.

Only distributions whose metadata state a permissive licence (MIT, BSD, ISC, Apache 2.0, PSF and
similar) are used. Each document's name has its distribution, and `SourcePackage` has the version
and licence, so that the sources of the training can be listed.
"""

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PERMISSIVE = re.compile(
    r"\b(MIT(-0|-CMU)?|BSD|[023]-?Clause|ISC|Apache|PSF|Python Software Foundation|Unlicense|Zlib"
    r"|BSL-1\.0|HPND)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\b[AL]?GPL|General Public|Mozilla|MPL|EUPL|CC-BY-SA|CC BY-SA|proprietary|commercial",
    re.IGNORECASE,
)
_FOLDERS = ("tests", "test", "testing", "_vendor", "vendor", "enterprise", "__pycache__")
_LEAST, _MOST = 400, 120_000  # bytes of a file
_OF_ONE = 10_000_000  # bytes of a distribution


@dataclass(frozen=True, slots=True)
class SourcePackage:
    name: str
    version: str
    licence: str
    files: tuple[Path, ...]


def packages(folders: Sequence[Path]) -> Iterator[SourcePackage]:
    """Yield the distributions with a permissive licence, in order of name, without duplicates.

    `folders` are site-packages.
    """
    seen: set[str] = set()
    found = importlib.metadata.distributions(path=[str(folder) for folder in folders])
    for distribution in sorted(found, key=lambda item: item.metadata["Name"].lower()):
        name = distribution.metadata["Name"]
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        licence = licence_of(distribution)
        if licence is None:
            continue
        files = tuple(
            Path(str(distribution.locate_file(path)))
            for path in distribution.files or ()
            if path.suffix == ".py" and not set(path.parts) & set(_FOLDERS)
        )
        if files:
            yield SourcePackage(name, distribution.version, licence, files)


def licence_of(distribution: importlib.metadata.Distribution) -> str | None:
    """Return the stated licence if all of it is permissive, else `None`."""
    told = distribution.metadata
    classifiers = [
        line.rpartition("::")[2].strip()
        for line in told.get_all("Classifier") or ()
        if line.startswith("License")
    ]
    free_text = "".join(told.get_all("License") or ()).strip().partition("\n")[0][:80]
    expression = "".join(told.get_all("License-Expression") or ())
    words = expression or ", ".join(classifiers) or free_text
    if not _PERMISSIVE.search(words) or _OTHER.search(words):
        return None
    return words


def texts(package: SourcePackage) -> Iterator[tuple[str, str]]:
    """Yield (path, source) of a package's modules.

    Non-ASCII files, tables, and files below 400 or above 120,000 bytes are left out, and what
    exceeds 10 MB of a package.
    """
    left = _OF_ONE
    for path in sorted(package.files):
        try:
            size = path.stat().st_size
            if not _LEAST <= size <= _MOST or size > left:
                continue
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        if not text.isascii() or _is_table(text):
            continue
        left -= size
        yield "/".join(path.parts[-3:]), text


def _is_table(text: str) -> bool:
    """Return whether most characters are digits and punctuation, as in data written as Python."""
    return sum(map(str.isalpha, text)) < 0.4 * len(text.replace(" ", ""))
