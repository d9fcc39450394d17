"""The chart as Helm itself renders it."""

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from deploy import parts

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "breakeven"
SCRIPT = Path(__file__).with_name("render_chart.py")
CRDS = Path(__file__).with_name("validate_crds.mjs")
RELEASE, NAMESPACE = "breakeven", "llm"


class HelmRefusal(Exception):
    """Helm's own words."""


class Chart(NamedTuple):
    """What Helm makes of the chart; `objects` in the order of its templates."""

    objects: list[dict[str, Any]]
    notes: str
    lint: dict[str, Any]

    def of(self, kind: str, name: str = "") -> list[dict[str, Any]]:
        return [
            object_ for object_ in self.objects
            if object_["kind"] == kind and (not name or object_["metadata"]["name"] == name)
        ]  # fmt: skip

    def one(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = self.of(kind, name)
        return found

    @property
    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every pod template by the name of what makes it."""
        for object_ in self.objects:
            template = object_.get("spec", {}).get("template")
            if isinstance(template, dict) and "spec" in template:
                yield object_["metadata"]["name"], template


@pytest.fixture(scope="module")
def ask_helm(helm: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Helm in one process for a file's tests: its start takes longer than what it is asked."""
    with subprocess.Popen(
        [helm, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(line: str) -> dict[str, Any]:
            print(line, file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert answer, "Helm's process ended"
            return json.loads(answer)

        yield ask
        process.stdin.close()


@pytest.fixture(scope="session")
def known_charts() -> dict[str, Chart]:
    return {}


@pytest.fixture(scope="module")
def render(
    ask_helm: Callable[[str], dict[str, Any]], known_charts: dict[str, Chart]
) -> Callable[..., Chart]:
    """`render(text of a values file)`; raises `Refused`."""
    known = known_charts

    def rendered(values: str = "", *, name: str = RELEASE, chart: Path = CHART) -> Chart:
        asked = {"chart": str(chart), "values": values, "name": name, "namespace": NAMESPACE,
                 "upgrade": False}  # fmt: skip
        key = json.dumps(asked)
        if chart != CHART or key not in known:
            found = ask_helm(key)
            if "error" in found:
                raise HelmRefusal(found["error"])
            known[key] = _chart(found)
        return known[key]

    return rendered


def _chart(found: dict[str, Any]) -> Chart:
    texts = found["manifests"]
    (notes,) = (text for name, text in texts.items() if name.endswith("NOTES.txt"))
    objects = [
        item
        for name, text in sorted(texts.items()) if name.endswith(".yaml")
        for item in yaml.safe_load_all(text) if item is not None
    ]  # fmt: skip
    return Chart(objects, notes, found["lint"])


@pytest.fixture(scope="session")
def crd_faults() -> Callable[[Iterable[dict[str, Any]]], list[str | None]]:
    """`crd_faults(objects)`: what is wrong with each, by the published schemas of its kind."""

    def find(objects: Iterable[dict[str, Any]]) -> list[str | None]:
        folder = parts.by_name("crds").find()
        lines = "".join(json.dumps(object_) + "\n" for object_ in objects)
        done = subprocess.run(
            ["node", CRDS, str(folder)], input=lines, check=True, capture_output=True, text=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return find


EXAMPLES = ("", *sorted(path.name for path in (CHART.parent / "examples").glob("*.yaml")))


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda name: name or "defaults")
def example(request: pytest.FixtureRequest, render: Callable[..., Chart]) -> Chart:
    """The chart with its defaults, and with each example."""
    path = CHART.parent / "examples" / request.param
    return render(path.read_text(encoding="utf-8") if request.param else "")


@pytest.fixture(scope="module")
def everything(render: Callable[..., Chart]) -> Chart:
    return render((CHART.parent / "examples" / "everything.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def several(render: Callable[..., Chart]) -> Chart:
    return render((CHART.parent / "examples" / "several-hosts.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def refused() -> type[Exception]:
    return HelmRefusal
