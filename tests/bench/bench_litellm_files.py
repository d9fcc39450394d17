"""Imports every configuration of a LiteLLM proxy that files and pages of documentation hold.

    python tests/bench/bench_litellm_files.py FOLDER ...

Each YAML file, and each YAML block of Markdown with a `model_list`, goes through `breakeven config
import`. It is refused, each loss by its name; with all losses accepted what is written has no fault
that `check` calls an error. A setting is dropped in silence if leaving it out of the file changes
neither what is written nor what is told. Writes `build/bench-litellm-files.json`.
"""

import argparse
import copy
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402  (after the checkout's packages)
from typer.testing import CliRunner  # noqa: E402  (as above)

from gateway.cli.app import app  # noqa: E402  (as above)
from gateway.config.document import read_document  # noqa: E402  (as above)
from gateway.config.examination import examine  # noqa: E402  (as above)
from gateway.config.litellm_import import ImportedConfig, carry_over  # noqa: E402  (as above)
from gateway.config.litellm_notes import ImportLoss  # noqa: E402  (as above)

GPU = ("--gpu", "H100", "--usd-per-hour", "4", "--compare-with", "openai/gpt-4o-mini")
ACCEPTED = [word for loss in ImportLoss for word in ("--accept", str(loss))]
VARIABLES = {
    "SLACK_WEBHOOK_URL": "https://hooks.example.com/x",
    "AZURE_API_BASE": "https://example.openai.azure.com",
    "DATABRICKS_API_BASE": "https://example.databricks.com/serving-endpoints",
    "WATSONX_URL": "https://us-south.ml.cloud.ibm.com",
}
BLOCK = re.compile(
    r"^([ \t]*)```[ \t]*ya?ml[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
IGNORED = ("id",)  # LiteLLM's own name of a deployment, which nothing refers to here
SECTIONS = ("litellm_settings", "router_settings", "general_settings", "environment_variables")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, text in _texts(options.folders):
            outcome, told = judge(text, Path(place))
            counts[outcome] += 1
            if outcome.startswith("FAULT"):
                failed[name] = f"{outcome}: {told}"
            else:
                losses.update(set(told))
    for name, words in failed.items():
        print(f"{name}: {words}")
    found = {"files": dict(counts), "files_by_loss": dict(losses), "failed": failed}
    print(json.dumps({name: found[name] for name in ("files", "files_by_loss")}, indent=1))
    (ROOT / "build" / "bench-litellm-files.json").write_text(json.dumps(found, indent=1) + "\n")
    return 1 if failed else 0


def judge(text: str, folder: Path) -> tuple[str, list[str]]:
    """Return what came of a file, and the names of its losses or what is wrong."""
    given = read_document(text).value
    if given is None:
        return "no YAML for LiteLLM either", []
    if not isinstance(given.get("model_list"), list):
        return "no list of models", []
    if silent := list(_silent(given)):
        return "FAULT dropped in silence", silent
    file = folder / "litellm.yaml"
    file.write_text(text)
    out, prices = (folder / f"{time.monotonic_ns()}{end}" for end in (".yaml", ".csv"))
    words = ["config", "import", str(file), "--out", str(out), "--prices", str(prices), *GPU]
    plain = CliRunner().invoke(app, [*words, "--json"])
    if plain.exception is not None and not isinstance(plain.exception, SystemExit):
        return "FAULT traceback", [repr(plain.exception)]
    if not plain.stdout:
        named = "no entry of `model_list`" in plain.stderr and "error: " in plain.stderr
        return ("nothing of it can be carried over" if named else "FAULT no reason"), []
    notes = json.loads(plain.stdout)["notes"]
    losses = [str(note["lost"]) for note in notes if note["rank"] == "error"]
    if plain.exit_code:
        accepted = CliRunner().invoke(app, [*words, *ACCEPTED])
        if accepted.exit_code:
            return "FAULT not imported", [accepted.output[-300:]]
    told = [note["text"] for note in notes]
    faults = [words for words in _faults(out) if not any(words in note for note in told)]
    if faults:
        return "FAULT check", faults
    return ("names its losses" if losses else "carried over whole"), losses


def _faults(config: Path) -> list[str]:
    document = yaml.safe_load(config.read_text())
    keys = [part.get("api_key_env") for part in document.get("providers", {}).values()]
    keys += [part["engine"].get("api_key_env") for part in document.get("pools", {}).values()]
    environ = os.environ | {key: "sk-x" for key in keys if key} | VARIABLES
    document["server"] = {**document.get("server", {}), "port": 65_000}
    config.write_text(yaml.safe_dump(document))
    examined = examine(config, at_us=time.time_ns() // 1000, environ=environ, asks_engines=False)
    if examined.settings is not None:
        return []
    return [fault.message for fault in examined.faults if fault.severity == "error"]


def _silent(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings without which the import says and writes just the same."""
    whole = _imported(given)
    places = {note.place for note in whole.notes}
    # An entry that is left out is told once, with all that it states.
    places |= {
        note.place.partition("]")[0] + "]"
        for note in whole.notes
        if note.loss is ImportLoss.MODELS and note.place.startswith("model_list[")
    }
    for path in _settings(given):
        place = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, path)))
        told = any(place == other or place.startswith(f"{other}.") for other in places)
        told = told or any(other.startswith(f"{place}.") for other in places)
        told = told or path[-1] in IGNORED or _value(given, path) in (None, "")
        if told:
            continue
        if all(_made(changed) == _made_of(whole) for changed in _changed(given, path)):
            yield place


def _value(given: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        given = given[step]
    return given


def _changed(given: Mapping[str, Any], path: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the file without a setting, and with another value of it."""
    for removes in (True, False):
        other = copy.deepcopy(dict(given))
        inner: Any = other
        for step in path[:-1]:
            inner = inner[step]
        value = inner.pop(path[-1])
        if not removes:
            inner[path[-1]] = f"{value}-other" if isinstance(value, str) else 12345
        yield other


def _settings(given: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for name, value in given.items():
        if name in SECTIONS and isinstance(value, Mapping):
            yield from ((name, key) for key in value)
        elif name not in ("model_list", *SECTIONS):
            yield (name,)
    for number, entry in enumerate(given["model_list"]):
        for name, value in entry.items() if isinstance(entry, Mapping) else ():
            here = ("model_list", number, name)
            if name in ("litellm_params", "model_info") and isinstance(value, Mapping):
                yield from ((*here, key) for key in value)
            elif name not in ("litellm_params", "model_info"):
                yield here


def _imported(given: Mapping[str, Any]) -> ImportedConfig:
    return carry_over(given, gpu={"type": "H100"}, provider_of=lambda _: "openai")


def _made(given: Mapping[str, Any]) -> str:
    return _made_of(_imported(given))


def _made_of(made: ImportedConfig) -> str:
    return repr((made.document, made.notes, made.prices))


def _texts(folders: list[Path]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".yaml", ".yml"):
                texts = [path.read_text(errors="replace")]
            elif path.suffix in (".md", ".mdx"):
                texts = list(_blocks(path.read_text(errors="replace")))
            else:
                continue
            for number, text in enumerate(texts):
                if "model_list:" in text and text not in seen:
                    seen.add(text)
                    yield f"{path.name}#{number}", text


def _blocks(page: str) -> Iterator[str]:
    for match in BLOCK.finditer(page):
        pad, body = match[1], match[2]
        yield "\n".join(line.removeprefix(pad) for line in body.split("\n"))


if __name__ == "__main__":
    raise SystemExit(main())
