"""Money cases: a request, the upstream's answer, prices, and what is right.

A case is a folder of `money/`; `README.md` there describes its files. The name `up` of its
provider becomes the name of the case, because one gateway serves all cases.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

USUAL_PRICE = {
    "usd_per_million": {
        "input": 1, "cached": 0.1, "cache_write": 1.25, "cache_write_1h": 2, "output": 10,
    }
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CaseStep:
    """`times` requests of one kind; `leave` says when the client resets the connection."""

    name: str
    path: str
    body: dict[str, Any] | None
    form: dict[str, Any] | None
    upstream: Path
    times: int
    at_once: bool
    leave: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class MoneyCase:
    """`right` lists the outcomes that are right; any of them will do."""

    name: str
    about: str
    steps: tuple[CaseStep, ...]
    right: tuple[dict[str, Any], ...]
    prices: dict[str, Any]
    provider: dict[str, Any]
    budget_usd: float | None


def load_cases(folder: Path) -> list[MoneyCase]:
    return [load_case(path.parent) for path in sorted(folder.glob("*/request.json"))]


def load_case(folder: Path) -> MoneyCase:
    asked = json.loads((folder / "request.json").read_text())
    expected = json.loads((folder / "expected.json").read_text())
    provider = dict(asked.get("provider", {}))
    if "provider_name" in asked:  # the adapter goes by it
        provider.setdefault("litellm_prefix", asked["provider_name"])
    steps = asked.get("steps", [asked])
    return MoneyCase(
        name=folder.name,
        about=expected["about"],
        steps=tuple([_step(folder, step) for step in steps]),
        right=tuple(expected["right"]),
        prices=_prices(folder, provider),
        provider=provider,
        budget_usd=asked.get("budget_usd"),
    )


def _step(folder: Path, step: dict[str, Any]) -> CaseStep:
    body, form = step.get("body"), step.get("form")
    if body is not None:
        body = {**body, "model": _renamed(body["model"], folder.name)}
    if form is not None:
        fields = {**form["fields"], "model": _renamed(form["fields"]["model"], folder.name)}
        form = {"fields": fields, "name": form["file"]["name"], "sound": _sound(folder, form)}
    return CaseStep(
        name=step.get("name", ""),
        path=step["POST"],
        body=body,
        form=form,
        upstream=folder / step["upstream"] if "upstream" in step else _answer(folder),
        times=step.get("times", 1),
        at_once=step.get("at_once", False),
        leave=step.get("leave"),
    )


def _answer(folder: Path) -> Path:
    (answer,) = folder.glob("upstream.*")
    return answer


def _sound(folder: Path, form: dict[str, Any]) -> bytes:
    file = form["file"]
    if "path" in file:
        return (folder / file["path"]).read_bytes()
    return bytes.fromhex(file["head_hex"]) + bytes([file["byte"]]) * file["count"]


def _prices(folder: Path, provider: dict[str, Any]) -> dict[str, Any]:
    path = folder / "prices.yaml"
    if path.exists():
        prices = yaml.safe_load(path.read_text())["prices"]
        return {_renamed(name, folder.name): terms for name, terms in prices.items()}
    return {} if "prices_as" in provider else {f"{folder.name}/m": USUAL_PRICE}


def _renamed(model: str, name: str) -> str:
    return f"{name}/{model.removeprefix('up/')}"
