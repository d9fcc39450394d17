"""Moderations without a model: a text is flagged if it has a word of a category."""

from typing import Any, Final

import msgspec

from backends.simulator.dialect import RefusedError, SimulatedRules, decode, model_of

CATEGORIES: Final = (
    "harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
    "illicit/violent", "self-harm", "self-harm/instructions", "self-harm/intent", "sexual",
    "sexual/minors", "violence", "violence/graphic",
)  # fmt: skip
DEFAULT_MODEL: Final = "omni-moderation-latest"


def parse_moderation(body: bytes, rules: SimulatedRules) -> tuple[str, list[str]]:
    """Return model and texts; the parts of one input are one text."""
    fields = {"model": DEFAULT_MODEL, **decode(body)}
    given = fields.get("input")
    if isinstance(given, str):
        return model_of(fields, rules), [given]
    if not isinstance(given, list) or not given:
        raise RefusedError("validation", "Field required: input", "input")
    if all(isinstance(item, str) for item in given):
        return model_of(fields, rules), given
    texts = [str(part.get("text", "")) for part in given if isinstance(part, dict)]
    return model_of(fields, rules), [" ".join(texts)]


def moderate(model: str, inputs: list[str], *, id: str) -> bytes:  # noqa: A002  (as on the wire)
    results: list[dict[str, Any]] = []
    for text in inputs:
        found = {category: category in text.lower() for category in CATEGORIES}
        results.append(
            {
                "flagged": any(found.values()),
                "categories": found,
                "category_scores": {name: 0.9 if hit else 0.0 for name, hit in found.items()},
                "category_applied_input_types": {name: ["text"] for name in CATEGORIES},
            }
        )
    return msgspec.json.encode({"id": id, "model": model, "results": results})
