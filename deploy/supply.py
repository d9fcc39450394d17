"""Installed packages and their licences, from package metadata: `python -m deploy.supply`.

The module also checks `.pth` files. At every start, Python runs their lines that begin with
`import`, so a malicious package can hide there. A file that may run code, or that leads to a folder
outside the environment, is printed, and the exit status is 1. Only the standard library is used.
"""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path
from typing import NamedTuple

OWN = "_breakeven.pth"  # an editable installation's file; it adds this folder


class Package(NamedTuple):
    name: str
    version: str
    licence: str


def packages(site: Path) -> list[Package]:
    """Return the packages of a folder, sorted by name. A missing licence is `unknown`."""
    found = (
        Package(each.name, each.version, _licence(each.metadata))
        for each in distributions(path=[str(site)])
    )
    return sorted(found, key=lambda package: package.name.lower())


def unexpected_files(site: Path, own: Path) -> Iterator[str]:
    """Yield a line per .pth entry that runs code or adds a folder other than `own`."""
    for file in sorted(site.glob("*.pth")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("import ", "import\t")):
                yield f"{file.name}: runs code at every start: {line[:80]}"
            elif file.name != OWN or Path(line) != own:
                yield f"{file.name}: leads to {line[:80]}"


def _licence(stated: PackageMetadata) -> str:
    classified = [
        value.rpartition(" :: ")[2]
        for value in stated.get_all("Classifier", [])
        if value.startswith("License :: ")
    ]
    expression, short = (
        stated.get_all(name, [""])[0].strip().split("\n")[0]
        for name in ("License-Expression", "License")
    )
    return expression or " and ".join(classified) or short or "unknown"


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    site = next(Path(sys.prefix).glob("lib/python*/site-packages"))
    print(json.dumps([package._asdict() for package in packages(site)], indent=1))
    faults = list(unexpected_files(site, root))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
