"""Bills of materials of installable packages, CycloneDX 1.6: `python -m deploy.sbom`.

One document per locked environment is written to build/sbom. A lock may allow several files of one
version (one wheel per platform); the component's `distribution` reference has the hashes of all. A
licence comes from the metadata of an installed package of that version, or from npm's lock, and is
left out if neither has one. The same input yields the same bytes: the time is SOURCE_DATE_EPOCH or
absent, and the serial number is derived from the contents.
"""

import base64
import json
import os
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import parts
from deploy.lock import NODE, SETS
from deploy.supply import packages

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "sbom"
EPOCH = "SOURCE_DATE_EPOCH"  # reproducible-builds.org
UNKNOWN = "unknown"
Licences = Mapping[tuple[str, str], str]  # licence by (name, version) of installed packages


class LockedPart(NamedTuple):
    """A locked package. `hashes` are `algorithm:hexadecimal`, one for each allowed file."""

    kind: str  # type in package URLs: pypi or npm
    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""
    licence: str = ""


def environments() -> dict[str, tuple[Path, ...]]:
    """Return the lock files of each environment, by its name."""
    found: dict[str, tuple[Path, ...]] = {_name(set_.path): (ROOT / set_.path,) for set_ in SETS}
    cpu = ROOT / "deploy" / "engine-cpu"
    found["engine-cpu"] = (cpu / "requirements.lock", cpu / "torch.lock")
    for folder in NODE:
        found[_name(folder.relative_to(ROOT).as_posix())] = (folder / "package-lock.json",)
    return found


def _name(path: str) -> str:
    words = path.removesuffix(".lock").removesuffix("requirements").strip("/")
    return words.removeprefix("deploy/").replace("/", "-") or "gateway"


def locked(path: Path) -> Iterator[LockedPart]:
    """Yield every package that one lock file names."""
    text = path.read_text(encoding="utf-8")
    yield from (_of_npm if path.suffix == ".json" else _of_pip)(text)


def _of_pip(text: str) -> Iterator[LockedPart]:
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for block in filter(str.strip, re.split(r"\n(?=[A-Za-z0-9])", lines)):
        head, *rest = (line.strip().removesuffix("\\").strip() for line in block.splitlines())
        wanted = Requirement(head)
        (pin,) = wanted.specifier
        hashes = tuple(line.removeprefix("--hash=") for line in rest if line)
        name, marker = canonicalize_name(wanted.name), str(wanted.marker or "")
        yield LockedPart("pypi", name, pin.version, hashes, marker)


def _of_npm(text: str) -> Iterator[LockedPart]:
    for path, package in json.loads(text)["packages"].items():
        if path:
            algorithm, _, digest = package["integrity"].partition("-")
            hashes = (f"{algorithm}:{base64.b64decode(digest).hex()}",)
            name = path.rpartition("node_modules/")[2]
            yield LockedPart(
                "npm", name, package["version"], hashes, licence=package.get("license", "")
            )


def installed(sites: Iterable[Path]) -> dict[tuple[str, str], str]:
    """Return licences by package name and version. The first folder that states one wins."""
    found: dict[tuple[str, str], str] = {}
    for site in sites:
        for package in packages(site):
            if package.licence != UNKNOWN:
                found.setdefault(
                    (canonicalize_name(package.name), package.version), package.licence
                )
    return found


def document(
    name: str, found: Iterable[LockedPart], licences: Licences, at: datetime | None
) -> str:
    """Return an environment's bill of materials as JSON text. `at` is its timestamp, if any."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licence = LicenseFactory().make_from_string
    root = Component(
        name=project["name"] if name == "gateway" else f"{project['name']}-{name}",
        version=project["version"], type=ComponentType.APPLICATION, bom_ref="root",
        licenses=[licence(project["license"])],
    )  # fmt: skip
    components = {item.purl: item for item in (_component(each, licences) for each in found)}
    bom = Bom(components=components.values())
    bom.metadata.component = root
    bom.register_dependency(root, components.values())
    made = json.loads(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string())
    del made["metadata"]["timestamp"], made["serialNumber"]  # these differ for each run
    if at is not None:
        made["metadata"]["timestamp"] = at.isoformat()
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(made, sort_keys=True))
    return json.dumps(made | {"serialNumber": serial.urn}, indent=1, sort_keys=True) + "\n"


def _component(locked: LockedPart, licences: Licences) -> Component:
    group, _, name = locked.name.rpartition("/")  # npm names may have a scope
    url = PackageURL(locked.kind, group or None, name, locked.version)
    stated = (
        licences.get((locked.name, locked.version), "") if locked.kind == "pypi" else locked.licence
    )
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url.to_string()),
        hashes=[HashTypeFactory().from_composite_str(text) for text in locked.hashes],
    )  # fmt: skip
    return Component(
        name=name,
        group=group or None,
        version=locked.version,
        purl=url,
        bom_ref=url.to_string(),
        external_references=[files],
        licenses=[LicenseFactory().make_from_string(stated)] if stated else [],
        properties=[Property(name="breakeven:marker", value=locked.marker)]
        if locked.marker
        else [],
    )


def sites() -> list[Path]:
    """Return the site-packages folders of these environments that exist on this machine."""
    homes = [Path(sys.prefix), parts.engine_folder(), parts.FOCUS, *sorted(parts.SDK.glob("*"))]
    return [site for home in homes for site in home.glob("lib/python3*/site-packages")]


def main() -> int:
    epoch = os.environ.get(EPOCH)
    at = datetime.fromtimestamp(int(epoch), UTC) if epoch else None
    licences = installed(sites())
    OUT.mkdir(parents=True, exist_ok=True)
    for name, files in environments().items():
        every = [named for file in files for named in locked(file)]
        (OUT / f"{name}.cdx.json").write_text(document(name, every, licences, at), encoding="utf-8")
        said = sum(
            bool(named.licence or licences.get((named.name, named.version))) for named in every
        )
        print(f"{name:28} {len(every):4} packages, {said:4} with a licence")
    return 0


if __name__ == "__main__":
    sys.exit(main())
