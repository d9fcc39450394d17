"""A section without its extra is refused by `check`, not by a worker that cannot start."""

import tomllib
from pathlib import Path

import pytest

from gateway.config.checks.missing_extras import EXTRAS, check_extras, is_installed
from gateway.config.config_facts import PLAUSIBLE
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.schema import Settings

ROOT = Path(__file__).parents[4]
SECTIONS = {
    "opentelemetry": "opentelemetry: {endpoint: 'http://127.0.0.1:4318'}",
    "dashboard": "dashboard: {enabled: true}",
    "keda": """
server: {keda_port: 9000}
pools:
  a:
    engine: {kind: vllm, endpoints: ["http://10.0.0.5:8000/v1"]}
    gpu: {type: H100, usd_per_hour: 4.0}
    scale: {min: 0, max: 2, actuator: {kind: keda, name: a}}
""".lstrip(),
}


def settings(text: str) -> Settings:
    found = draft_settings(read_document(text)).settings
    assert found is not None
    return found


def none_is_there(_: str) -> bool:
    return False


@pytest.mark.parametrize("extra", sorted(SECTIONS))
def test_a_section_without_its_extra_is_refused_with_the_command(extra: str) -> None:
    (fault,) = check_extras(settings(SECTIONS[extra]), none_is_there)
    assert fault.severity == "error"
    assert fault.text("f").startswith(f"f: {SECTIONS[extra].partition(':')[0]}.")
    assert f"`pip install 'breakeven[{extra}]'`" in fault.message


@pytest.mark.parametrize("text", ["models: {}", *SECTIONS.values()])
def test_nothing_is_said_where_the_packages_are_there_or_nobody_needs_them(text: str) -> None:
    assert list(check_extras(settings(text), is_installed)) == []


@pytest.mark.parametrize("text", ["models: {}", "server: {keda_port: 9000}"])
def test_what_is_off_needs_no_package(text: str) -> None:
    assert list(check_extras(settings(text), none_is_there)) == []


def test_each_extra_is_one_of_the_package_and_brings_its_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(SECTIONS) == {extra.name for extra in EXTRAS}
    assert set(SECTIONS) <= set(project["optional-dependencies"])
    assert all(is_installed(module) for extra in EXTRAS for module in extra.modules)


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.sdk", "json.no_such_part"])
def test_a_module_whose_parent_lacks_is_not_installed(module: str) -> None:
    assert not is_installed(module)


def test_every_start_looks_for_it() -> None:
    assert "check_missing_extras" in {check.__name__ for check in PLAUSIBLE}
