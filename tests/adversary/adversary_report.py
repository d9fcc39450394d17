"""How wide bounds are: what was held for calls, against what was charged, by kind of schedule.

Only honest calls that set a limit count: another's hold follows the room of its budget. `whole` is
money held to money charged; `output` and `input` are tokens, `output` of calls alone that used
their limit up, where it should be 1.0.
"""

import json
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from adversary_calls import AdversaryCall
from adversary_world import CallResult


@dataclass(slots=True)
class BoundRatios:
    whole: list[float] = field(default_factory=list)
    input: list[float] = field(default_factory=list)
    output: list[float] = field(default_factory=list)


@dataclass(slots=True)
class BoundReport:
    kinds: dict[str, BoundRatios] = field(default_factory=dict)

    def add(self, kind: str, result: CallResult) -> None:
        call, settled, most = result.call, result.settled, result.most
        if call.made is None or call.is_odd or settled is None or most is None:
            return
        said_limit = limit_of(call)
        counts_output = call.path in ("/v1/chat/completions", "/v1/completions")
        if not settled.cost_pusd or (counts_output and said_limit is None):
            return
        ratios = self.kinds.setdefault(kind, BoundRatios())
        held = result.opened.bound_pusd if result.opened is not None else 0
        ratios.whole.append(held / settled.cost_pusd)
        if call.made.prompt:
            ratios.input.append(most.prompt / call.made.prompt)
        if said_limit is not None and call.made.output == said_limit:
            ratios.output.append(most.output / said_limit)

    def as_json(self) -> dict[str, Any]:
        return {
            kind: {name: _figures(getattr(ratios, name)) for name in ("whole", "input", "output")}
            for kind, ratios in self.kinds.items()
        }


def limit_of(call: AdversaryCall) -> int | None:
    """Output tokens that all choices of the call may have by its own limit, if it has one."""
    if call.content_type != "application/json":
        return None
    body = json.loads(call.body)
    limit = body.get("max_tokens")
    prompts = len(body["prompt"]) if isinstance(body.get("prompt"), list) else 1
    return None if limit is None else int(limit) * int(body.get("n", 1)) * prompts


def _figures(ratios: list[float]) -> dict[str, float] | None:
    if not ratios:
        return None
    exact = {"median": median(ratios), "max": max(ratios), "min": min(ratios)}
    return {"count": len(ratios), **{name: round(value, 3) for name, value in exact.items()}}


def bounds_table(parts: list[dict[str, Any]]) -> str:
    """The medians of all parts, and the highest ratio that any has, as text."""
    kinds = sorted({kind for part in parts for kind in part})
    lines = [f"{'kind':24} {'calls':>7} {'whole':>8} {'highest':>9} {'input':>8} {'output':>8}"]
    for kind in kinds:
        found = [part[kind] for part in parts if kind in part]
        calls = sum(part["whole"]["count"] for part in found if part["whole"])
        cells = [
            _cell(found, "whole", "median"),
            _cell(found, "whole", "max"),
            _cell(found, "input", "median"),
            _cell(found, "output", "max"),
        ]
        lines.append(f"{kind:24} {calls:7} {cells[0]:>8} {cells[1]:>9} {cells[2]:>8} {cells[3]:>8}")
    return "\n".join(lines)


def _cell(parts: list[dict[str, Any]], name: str, figure: str) -> str:
    values = [part[name][figure] for part in parts if part[name]]
    if not values:
        return "-"
    return f"{max(values) if figure == 'max' else median(values):.2f}"
