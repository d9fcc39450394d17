"""The page `how-to/leave-litellm.md`: LiteLLM settings that stay, change or are lost.

The importer makes all tables: the first shows what it writes for an example, the others list its
notes on every setting that it knows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from deploy.docsite.markdown import code, head, table
from gateway.config.litellm_import import carry_over
from gateway.config.litellm_notes import ImportNote, known_notes

ROOT: Final = Path(__file__).resolve().parents[2]
WORDS: Final = ROOT / "deploy" / "docsite" / "leave_litellm.md"
TABLES: Final = "<!-- tables -->"
GPU: Final = {"type": "H100", "usd_per_hour": 4.0}
_CHAT: Final = {
    "model_name": "chat",
    "litellm_params": {"model": "openai/gpt-4o-mini", "api_key": "os.environ/OPENAI_API_KEY"},
}
_OWN: Final = {
    "model_name": "chat",
    "litellm_params": {"model": "hosted_vllm/llama-8b", "api_base": "http://10.0.0.5:8000/v1"},
}


class CarriedExample(NamedTuple):
    """A part of a proxy's file, added to `base`, and the section that it becomes."""

    title: str
    given: dict[str, Any]
    section: str
    base: tuple[dict[str, Any], ...] = (_CHAT,)


def _with(entry: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {**entry, "litellm_params": {**entry["litellm_params"], **params}}


EXAMPLES: Final = (
    CarriedExample("a model at a provider", {"model_list": [_CHAT]}, "models", ()),
    CarriedExample("its key, by a variable", {"model_list": [_CHAT]}, "providers", ()),
    CarriedExample("an engine of your own", {"model_list": [_OWN]}, "pools", ()),
    CarriedExample(
        "several deployments of one name", {"model_list": [_CHAT, _OWN]}, "models", ()),
    CarriedExample(
        "`order` of deployments",
        {"model_list": [_with(_OWN, order=1), _with(_CHAT, order=2)]}, "models", ()),
    CarriedExample(
        "`weight` of deployments",
        {"model_list": [_with(_OWN, weight=3), _with(_CHAT, weight=1)]}, "policies", ()),
    CarriedExample(
        "fallbacks",
        {
            "model_list": [_OWN, {**_CHAT, "model_name": "backup"}],
            "router_settings": {"fallbacks": [{"chat": ["backup"]}]},
        }, "models", ()),
    CarriedExample(
        "an alias", {"router_settings": {"model_group_alias": {"gpt-4": "chat"}}}, "models"),
    CarriedExample(
        "every model of a provider",
        {"model_list": [{"model_name": "openai/*", "litellm_params": {
            "model": "openai/*", "api_key": "os.environ/OPENAI_API_KEY"}}]}, "models", ()),
    CarriedExample("timeouts", {"litellm_settings": {"request_timeout": 60}}, "server"),
    CarriedExample(
        "a budget of all",
        {"litellm_settings": {"max_budget": 100, "budget_duration": "30d"}}, "budgets"),
    CarriedExample(
        "a budget of a provider",
        {"router_settings": {"provider_budget_config": {
            "openai": {"budget_limit": 10, "time_period": "1d"}}}}, "budgets"),
    CarriedExample(
        "limits of each user",
        {"litellm_settings": {"default_internal_user_params": {
            "max_budget": 5, "budget_duration": "1d"}}}, "budgets"),
    CarriedExample(
        "the largest body", {"general_settings": {"max_request_size_mb": 20}}, "server"),
    CarriedExample("OpenTelemetry", {"litellm_settings": {"callbacks": ["otel"]}}, "opentelemetry"),
)  # fmt: skip


def imported(example: CarriedExample) -> Any:
    """Return what the importer writes for an example."""
    given = {"model_list": list(example.base), **example.given}
    return carry_over(given, gpu=GPU, provider_of=lambda _: None, sold_as=lambda _: "openai/gpt-4o")


def text() -> str:
    """Return the text of the page: fixed text around generated tables."""
    before, _, after = WORDS.read_text(encoding="utf-8").partition(TABLES)
    title, _, words = before.strip().partition("\n")
    tables = "\n\n".join([
        "### Same: carried over",
        table(("what", "LiteLLM", "Breakeven"), map(_carried, EXAMPLES)),
        "### Same: nothing to set",
        _notes("note"),
        "### Changes: acts differently, the import warns",
        _notes("warning"),
        "### Lost: the import stops until `--accept` names the loss",
        _lost(),
    ])  # fmt: skip
    return f"{head(title.removeprefix('# '))}\n\n{words.strip()}\n\n{tables}\n\n{after.strip()}\n"


def _carried(example: CarriedExample) -> tuple[str, str, str]:
    made = imported(example).document
    given = {
        name: part for name, part in example.given.items() if part != [_CHAT] or _alone(example)
    }
    return example.title, _flow(given), _flow({example.section: made.get(example.section)})


def _alone(example: CarriedExample) -> bool:
    return not example.base


def _flow(value: Any) -> str:
    dumped = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return code(dumped.strip().removeprefix("{").removesuffix("}"))


def _by_text(rank: str) -> Iterator[tuple[ImportNote, list[str]]]:
    """Yield each note of a rank once, with all settings that it applies to."""
    groups: dict[tuple[str, object], tuple[ImportNote, list[str]]] = {}
    for note in known_notes():
        if note.rank() == rank:
            groups.setdefault((note.text, note.loss), (note, []))[1].append(note.place)
    yield from groups.values()


def _notes(rank: str) -> str:
    rows = ((_names(names), note.text) for note, names in _by_text(rank))
    return table(("LiteLLM", "here"), rows)


def _lost() -> str:
    rows = ((_names(names), code(str(note.loss)), note.text) for note, names in _by_text("error"))
    return table(("LiteLLM", "`--accept`", "instead"), rows)


def _names(names: list[str]) -> str:
    return ", ".join(code(name) for name in sorted(names))
