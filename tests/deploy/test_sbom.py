"""Bills of materials: valid, whole, and the same bytes whenever the same is locked."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

from deploy import sbom
from deploy.sbom import LockedPart, document, environments, locked

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6)
LICENCES = {("anyio", "4.16.0"): "MIT", ("uv", "0.13.8"): "MIT OR Apache-2.0", ("x", "1"): "Free"}


@pytest.fixture(scope="module", autouse=True)
def short_addresses() -> Iterator[None]:
    """Let the validator judge an address by its shape, once for each shape.

    Its grammar takes 0.1 s for one of these, and tells neither letters nor digits apart.
    """
    is_valid = cache(jsonschema._format._rfc3987_is_valid_syntax)

    def is_valid_shape(rule: str, address: str) -> bool:
        shape = re.sub(r"%[0-9A-Fa-f]{2}|[A-Za-z][A-Za-z0-9]*|[0-9]+", shorten, address)
        return is_valid(rule, shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jsonschema._format._rfc3987_is_valid_syntax", is_valid_shape)
        yield


def shorten(match: re.Match[str]) -> str:
    first = match[0][0]
    return match[0] if first == "%" else "a" if first.isalpha() else "1"


def every(name: str) -> list[LockedPart]:
    return [item for file in environments()[name] for item in locked(file)]


@cache
def made(name: str, at: datetime | None = None) -> str:
    return document(name, every(name), LICENCES, at)


def test_every_lock_of_the_repository_is_in_one() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.lock", "*package-lock.json"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [file for environment in environments().values() for file in environment]
    assert sorted(files) == sorted(ROOT / line for line in listed.stdout.splitlines())
    assert {"gateway", "tests", "tools", "engine-cpu", "engine-cuda"} <= set(environments())


@pytest.mark.parametrize("name", ["gateway", "tests", "engine-cpu", "tests-sdk-crds"])
def test_it_is_valid(name: str) -> None:
    """Not each of them: what is made by the same code differs by names alone, and this is slow."""
    assert VALIDATOR.validate_str(made(name)) is None


@pytest.mark.parametrize("name", environments())
def test_each_names_every_package_with_its_hashes(name: str) -> None:
    components = json.loads(made(name))["components"]
    wanted = {(named.name, named.version) for named in every(name)}
    assert {
        (
            f"{component['group']}/{component['name']}"
            if "group" in component
            else component["name"],
            component["version"],
        )
        for component in components
    } == wanted
    assert len(components) == len(wanted)
    for component in components:
        (files,) = component["externalReferences"]
        assert files["hashes"]
        assert component["purl"] == component["bom-ref"]


def test_control_a_document_out_of_form_is_not_valid() -> None:
    wrong = made("tests-sdk-helm").replace('"type": "library"', '"type": "books"')
    assert VALIDATOR.validate_str(wrong) is not None
    for address in ("pkg:pypi/a b@1", "1pkg:pypi/a%4@1"):
        bill = json.loads(made("tests-sdk-helm"))
        bill["components"][0]["externalReferences"][0]["url"] = address
        assert VALIDATOR.validate_str(json.dumps(bill)) is not None


@pytest.mark.parametrize("name", ["gateway", "engine-cpu", "tests-sdk-crds"])
def test_every_hash_of_the_lock_is_in_it_and_no_other(name: str) -> None:
    components = json.loads(made(name))["components"]
    found = [
        each["content"]
        for component in components
        for each in component["externalReferences"][0]["hashes"]
    ]
    text = "".join(file.read_text(encoding="utf-8") for file in environments()[name])
    in_the_lock = re.findall(r"sha256:([0-9a-f]{64})", text) or re.findall(r"sha512-", text)
    assert len(found) == len(in_the_lock)
    if "sha256" in text:
        assert sorted(found) == sorted(in_the_lock)


def test_the_same_locks_make_the_same_bytes_and_others_another_serial() -> None:
    assert document("gateway", every("gateway"), LICENCES, None) == made("gateway")
    serial = json.loads(made("gateway"))["serialNumber"]
    fewer = json.loads(document("gateway", every("gateway")[1:], LICENCES, None))
    assert serial.startswith("urn:uuid:")
    assert fewer["serialNumber"] != serial
    assert "timestamp" not in json.loads(made("gateway"))["metadata"]


def test_the_order_of_a_lock_does_not_matter() -> None:
    assert document("gateway", reversed(every("gateway")), LICENCES, None) == made("gateway")


def test_its_time_is_the_one_that_is_given() -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    assert json.loads(made("tools", at))["metadata"]["timestamp"] == "2026-11-01T00:00:00+00:00"
    assert VALIDATOR.validate_str(made("tools", at)) is None


def test_licences_are_those_of_the_very_version() -> None:
    found = {
        component["name"]: component.get("licenses")
        for component in json.loads(made("gateway"))["components"]
    }
    assert found["anyio"] == [{"license": {"id": "MIT"}}]
    assert found["httpx"] is None  # none stated here
    tools = {
        component["name"]: component.get("licenses")
        for component in json.loads(made("tools"))["components"]
    }
    assert tools["uv"] == [{"expression": "MIT OR Apache-2.0"}]
    told = document("x", [LockedPart("pypi", "x", "1", ())], LICENCES, None)
    assert json.loads(told)["components"][0]["licenses"] == [{"license": {"name": "Free"}}]


def test_a_package_for_some_machines_says_for_which() -> None:
    components = json.loads(made("gateway"))["components"]
    (colorama,) = [component for component in components if component["name"] == "colorama"]
    assert "win32" in colorama["properties"][0]["value"]


def test_what_is_installed_here_is_licensed(tmp_path: Path) -> None:
    metadata = tmp_path / "a_b-1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.4\nName: A_b\nVersion: 1\nLicense-Expression: MIT\n")
    assert sbom.installed([tmp_path]) == {("a-b", "1"): "MIT"}
    assert sbom.installed(sbom.sites())["anyio", "4.16.0"]


def test_it_writes_them_all(tmp_path: Path) -> None:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    code = f"import deploy.sbom as s, pathlib; s.OUT = pathlib.Path({str(tmp_path)!r}); s.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    written = {path.name.removesuffix(".cdx.json") for path in tmp_path.iterdir()}
    assert written == set(environments())
    assert len(done.stdout.splitlines()) == len(written)
    first = json.loads((tmp_path / "gateway.cdx.json").read_text())
    assert first["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"
    # With licences as packages state them.
    assert VALIDATOR.validate_str((tmp_path / "engine-cuda.cdx.json").read_text()) is None
