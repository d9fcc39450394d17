"""A LiteLLM proxy's configuration as one of ours, and what of it could not be carried over.

Pure: the YAML's data in, a document of ours and notes out. Every setting of the given file either
has its place in the document or a note that says why not and what to do instead; nothing is left
out in silence. No key of a provider is repeated, also where the file holds it in the clear.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from backends.engines import VLLM
from backends.provider_refusals import KINDS as ADAPTED_KINDS
from backends.providers import DEFAULT_KIND, PROVIDER_KINDS
from gateway.config.deployments import (
    COSTS,
    CREDENTIAL,
    ENVIRON,
    SPOKEN,
    Deployment,
    address_in_environ,
    credentials_of,
    deployment,
    refusal_of,
    section_of,
    with_credential,
)
from gateway.config.litellm_notes import ImportNote, notes_on, reason_not_imported
from gateway.config.served_kinds import PROVIDER_DEFAULT

_PERIODS = {"1d": "day", "24h": "day", "1mo": "month", "30d": "month"}
_FALLBACKS = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")


class ImportedPrice(NamedTuple):
    """A price that the file states, by kind in dollars a token; what is not stated is left out."""

    name: str
    kinds: tuple[tuple[str, Decimal], ...]


@dataclass(slots=True)
class ImportedConfig:
    document: dict[str, Any] = field(default_factory=dict)
    notes: list[ImportNote] = field(default_factory=list)
    prices: list[ImportedPrice] = field(default_factory=list)


def carry_over(
    given: Mapping[str, Any],
    *,
    gpu: Mapping[str, Any],
    provider_of: Callable[[str], str | None],
    sold_as: Callable[[str], str | None] = lambda _: None,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> ImportedConfig:
    """`gpu`: what own engines run on, as `pools.NAME.gpu`; `provider_of`: as for `deployment`.

    `sold_as`: the API, as prices name it, that sells the same weights as an engine serves.
    `environ`: only addresses are read of it.
    """
    carried = ImportedConfig()
    models: dict[str, dict[str, Any]] = {}
    patterns: dict[str, str] = {}
    pools: dict[str, dict[str, Any]] = {}
    providers: dict[str, dict[str, Any]] = {}
    known_as: dict[str, str] = {}  # by target, what prices call it
    credentials = credentials_of(given.get("credential_list"))
    environ = {**environ, **_stated_variables(given.get("environment_variables"))}
    for index, written in enumerate(_entries(given.get("model_list"))):
        place, entry = f"model_list[{index}]", with_credential(written, credentials)
        name = str(entry.get("model_name") or "")
        found = deployment(entry, provider_of, environ)
        if found is None or not name:
            carried.notes.append(_nobody(place, entry, environ))
            continue
        mode = section_of(entry.get("model_info")).get("mode")
        if isinstance(mode, str) and mode not in SPOKEN:
            carried.notes.append(ImportNote(place, f"`mode: {mode}`: nothing here is asked so"))
            continue
        carried.notes += notes_on(place, entry, found)
        if "*" in name or "*" in found.model:
            if not _passed_through(patterns, providers, name, found):
                carried.notes.append(ImportNote(f"{place}.model_name", _PATTERN))
            continue
        carried.prices += _imported_prices(entry, found)
        found = _pool(pools, found, gpu) if found.own else _provider(providers, found)
        if not found.own and found.price_name:
            known_as[found.target] = found.price_name
        _target(models, name, found)
    sections = {name: section_of(given.get(name)) for name in _SECTIONS}
    for name, section in sections.items():
        _section(carried, models, name, section)
    for name in given:
        if name not in {"model_list", "credential_list", *_SECTIONS}:
            carried.notes.append(ImportNote(name, reason_not_imported(name)))
    _compare(models, pools, _Market(known_as, sold_as), carried.notes)
    parts = {"models": models | patterns, "pools": pools, "providers": providers}
    carried.document = {name: part for name, part in parts.items() if part} | carried.document
    carried.document["policies"] = [{"name": "default", "otherwise": "best_effort"}]
    return carried


_PATTERN = (
    "a pattern stands for one provider's own names at its own address, under one key: `openai/*` as"
    " `openai/*`"
)
_CREDENTIAL = (
    "`credential_list` has none of that name, so where it is sent is not known: write its address"
    " and the variable of its key here"
)
_SECTIONS = ("router_settings", "litellm_settings", "general_settings")


def _stated_variables(variables: object) -> dict[str, str]:
    """What the file itself puts into the environment; as for `environ` addresses alone are read."""
    return {
        str(name): value
        for name, value in section_of(variables).items()
        if isinstance(value, str) and not value.startswith(ENVIRON)
    }


def _nobody(place: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> ImportNote:
    if CREDENTIAL in section_of(entry.get("litellm_params")):
        return ImportNote(f"{place}.litellm_params.{CREDENTIAL}", _CREDENTIAL)
    variable = address_in_environ(entry)
    if variable is not None and not environ.get(variable):
        words = f"its address is in `{variable}`, which is not set here: set it, and import again"
        return ImportNote(f"{place}.litellm_params.api_base", words)
    refused = refusal_of(entry)
    if refused is not None:
        return ImportNote(f"{place}.litellm_params.model", refused)
    return ImportNote(place, "nobody can tell from `model` who serves it, or where")


def _target(models: dict[str, dict[str, Any]], name: str, found: Deployment) -> None:
    targets = models.setdefault(name, {"targets": []})["targets"]
    if found.target not in targets:
        targets.append(found.target)


def _pool(
    pools: dict[str, dict[str, Any]], found: Deployment, gpu: Mapping[str, Any]
) -> Deployment:
    """With others of the same model; under a name of its own beside a namesake."""
    for name in _names(found.name):
        engine: dict[str, Any] = {"kind": VLLM, "served_name": found.model, "endpoints": []}
        engine = pools.setdefault(name, {"engine": engine, "gpu": dict(gpu)})["engine"]
        if engine["served_name"] == found.model:
            break
    if found.base_url and found.base_url not in engine["endpoints"]:
        engine["endpoints"].append(found.base_url)
    if found.key:
        engine["api_key_env"] = found.key
    if found.serves:
        engine["kinds"] = [found.serves]
    return found._replace(name=name)


def _provider(providers: dict[str, dict[str, Any]], found: Deployment) -> Deployment:
    """The one of the same address, key and price, else one more."""
    for name in _names(found.name):
        price_name, base_url, prefix = found.price_name, found.base_url, found.litellm_prefix
        if name != found.name:  # under another name neither its address nor its prices are known
            price_name = price_name or found.target
            kind = PROVIDER_KINDS[found.kind]
            base_url = base_url or kind.addresses.get(found.name)
            prefix = prefix or (found.name if kind.finds_address else None)
        stated = {
            "kind": None if found.kind == DEFAULT_KIND else found.kind,
            "base_url": base_url,
            "api_key_env": found.key,
            "prices_as": price_name,
            "litellm_prefix": prefix,
        }
        stated = {key: value for key, value in stated.items() if value is not None}
        provider = providers.setdefault(name, dict(stated))
        if {key: value for key, value in provider.items() if key != "kinds"} == stated:
            break
    only = ADAPTED_KINDS.get(found.litellm_prefix or found.name, frozenset())
    if found.serves is not None and (only or found.serves not in PROVIDER_DEFAULT):
        kinds = provider.setdefault("kinds", [] if only else list(PROVIDER_DEFAULT))
        if found.serves not in kinds:
            kinds.append(found.serves)
    return found._replace(name=name)


def _passed_through(
    patterns: dict[str, str], providers: dict[str, dict[str, Any]], name: str, found: Deployment
) -> bool:
    """Whether a pattern has its counterpart; without one its provider is left out as well."""
    if found.own or (name, found.model) != (f"{found.name}/*", "*"):
        return False
    tried = {known: dict(provider) for known, provider in providers.items()}
    if _provider(tried, found).name != found.name:
        return False
    providers |= tried
    patterns[name] = "passthrough"
    return True


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _imported_prices(entry: Mapping[str, Any], found: Deployment) -> Iterator[ImportedPrice]:
    both = {**section_of(entry.get("model_info")), **section_of(entry.get("litellm_params"))}
    stated = [(kind, _decimal(both.get(word))) for kind, word in COSTS.items()]
    kinds = tuple([(kind, price) for kind, price in stated if price is not None])
    if kinds and not found.own:
        yield ImportedPrice(found.price_name or found.target, kinds)


def _section(
    carried: ImportedConfig,
    models: dict[str, dict[str, Any]],
    name: str,
    section: Mapping[str, Any],
) -> None:
    # Aliases first: who falls back may fall back to one.
    for key, value in sorted(section.items(), key=lambda pair: pair[0] != "model_group_alias"):
        place = f"{name}.{key}"
        if key in _FALLBACKS:
            _fall_back(models, place, value, carried.notes)
        elif key == "model_group_alias":
            _alias(models, place, section_of(value), carried.notes)
        elif key == "request_timeout" and _decimal(value):
            carried.document["server"] = {"timeouts": {"total_s": float(value)}}
        elif key == "max_budget" and _decimal(value):
            _budget(carried, place, value, section.get("budget_duration"))
        elif key != "budget_duration":
            carried.notes.append(ImportNote(place, reason_not_imported(key)))


def _fall_back(
    models: dict[str, dict[str, Any]], place: str, value: object, notes: list[ImportNote]
) -> None:
    """A model that falls back to others moves to their targets, too."""
    for entry in _entries(value):
        for name, others in entry.items():
            for said in others if isinstance(others, list) else [others]:
                other = _model_name_of(said)
                other = models.get(other, {}).get("same_as", other)
                if "targets" not in models.get(name, {}) or "targets" not in models.get(other, {}):
                    words = f"`{name}` to `{other}`: one of them is no model here"
                    notes.append(ImportNote(place, words))
                    continue
                if isinstance(said, Mapping) and len(said) > 1:
                    words = f"`{name}` to `{other}`: the same is asked there, nothing is changed"
                    notes.append(ImportNote(place, words))
                targets = models[name]["targets"]
                targets += [target for target in models[other]["targets"] if target not in targets]


def _alias(
    models: dict[str, dict[str, Any]], place: str, value: Mapping[str, Any], notes: list[ImportNote]
) -> None:
    for name, target in value.items():
        other = _model_name_of(target)
        if other in models and name not in models:
            models[name] = {"same_as": other}
        else:
            words = f"`{other}` is no model, or the name is taken"
            notes.append(ImportNote(f"{place}.{name}", words))


def _budget(carried: ImportedConfig, place: str, usd: object, duration: object) -> None:
    period = _PERIODS.get(str(duration))
    if period is None:
        words = f"`budget_duration: {duration}` is no calendar day or month: state it in `budgets`"
        carried.notes.append(ImportNote(place, words))
        return
    carried.document["budgets"] = [
        {"scope": "global", "usd": str(usd), "period": period, "hard": True}
    ]


class _Market(NamedTuple):
    """What APIs are called where prices are looked up, and which sells an engine's weights."""

    known_as: Mapping[str, str]  # by target; itself where it is not in it
    sold_as: Callable[[str], str | None]

    def names_of_targets(self, targets: Sequence[str]) -> list[str]:
        apis = [target for target in targets if not target.startswith("pool:")]
        return list(dict.fromkeys(self.known_as.get(name, name) for name in apis))


def _compare(
    models: Mapping[str, dict[str, Any]],
    pools: Mapping[str, Mapping[str, Any]],
    market: _Market,
    notes: list[ImportNote],
) -> None:
    """What an own engine's answers are worth is what an API would have charged for them."""
    for name, model in models.items():
        own = [target for target in model.get("targets", ()) if target.startswith("pool:")]
        if not own:
            continue
        apis = market.names_of_targets(model["targets"])
        served = pools[own[0].removeprefix("pool:")]["engine"]["served_name"]
        sold = None if apis else market.sold_as(served)
        if apis or sold:
            model["compare_with"] = apis or [sold]
        if sold:
            words = f"compared with `{sold}`, the cheapest that sells a model of its name: look"
            notes.append(ImportNote(f"models.{name}.compare_with", words))
        elif not apis:
            words = "needs the name of an API model: what it charges is what the engine saves"
            notes.append(ImportNote(f"models.{name}.compare_with", words))


def _model_name_of(value: object) -> str:
    """The model that a place names, plainly or with what else to ask of it; empty: none."""
    name = value.get("model") if isinstance(value, Mapping) else value
    return name if isinstance(name, str) else ""


def _entries(value: object) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, list) else []
    return [entry for entry in found if isinstance(entry, Mapping)]


def _decimal(value: object) -> Decimal | None:
    """A price or an amount; YAML reads `1e-06` as text, and a number is meant."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except ArithmeticError:
        return None
    return found if found.is_finite() and found >= 0 else None
