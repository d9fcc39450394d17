"""Import of a LiteLLM proxy's configuration, with notes on what could not be imported.

Pure: YAML data in, a document and notes out. Each setting of the file is imported or has a note
that says why not and what to do. Keys of providers are never repeated, even if the file contains
them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count, takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from backends.engines import VLLM
from backends.provider_refusals import KINDS as ADAPTED_KINDS
from backends.providers import DEFAULT_KIND, PROVIDER_KINDS
from gateway.config.deployments import (
    COSTS,
    CREDENTIAL,
    ENVIRON,
    SAME_AS,
    SPOKEN,
    Deployment,
    address_in_environ,
    credentials_of,
    deployment,
    is_address,
    price_step,
    refusal_of,
    section_of,
    stated_address,
    with_credential,
)
from gateway.config.litellm_notes import (
    ImportLoss,
    ImportNote,
    lost,
    note_on,
    notes_on,
    notes_on_pattern,
)
from gateway.config.litellm_sections import (
    ADDRESSES,
    SECTIONS,
    FileFacts,
    SectionReader,
    number_of,
    usual_timeouts,
)
from gateway.config.litellm_stages import ModelDeployment, ModelGroups, add_aliases, add_fallbacks
from gateway.config.sections import MANAGED_MEMBERS
from gateway.config.served_kinds import PROVIDER_DEFAULT

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ImportedPrice(NamedTuple):
    """Price stated in the file for prompts above `above_tokens`, in dollars per token by kind."""

    name: str
    kinds: tuple[tuple[str, Decimal], ...]
    tier: str = ""
    above_tokens: int = 0


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
    """Convert a LiteLLM configuration.

    `gpu` is the hardware of own engines, as `pools.NAME.gpu`. `provider_of` is used as in
    `deployment`. `sold_as` returns the API with the same weights as an engine. `environ` is read
    for addresses only.
    """
    carried = ImportedConfig()
    patterns: dict[str, str] = {}
    groups = ModelGroups(patterns=patterns, notes=carried.notes)
    environ = {**environ, **_stated_variables(given.get("environment_variables"))}
    parts = _Parts(patterns, groups, gpu, environ)
    credentials = credentials_of(given.get("credential_list"))
    for index, written in enumerate(_entries(given.get("model_list"))):
        place, entry = f"model_list[{index}]", with_credential(written, credentials)
        found = deployment(entry, provider_of, environ)
        if found is None or not entry.get("model_name"):
            carried.notes.append(_nobody(place, entry, environ))
        else:
            parts.add(carried, place, entry, found)
    sections = {name: section_of(given.get(name)) for name in SECTIONS}
    groups.usual = usual_timeouts(sections)
    models = {name: groups.model(name) for name in groups.deployments}
    add_aliases(models, groups, sections)
    add_fallbacks(models, groups, sections)
    facts = FileFacts(
        any(len(group) > 1 for group in groups.deployments.values()),
        "rpm" in parts.limited,
        bool(number_of(sections["litellm_settings"].get("request_timeout"))),
        parts.providers,
    )
    reader = SectionReader(carried.document, carried.notes, environ, parts.provider_named, facts)
    for name, section in sections.items():
        reader.read(name, section)
    stated = [groups.usual, *(model.get("timeouts", {}) for model in models.values())]
    reader.put_timeouts(groups.usual, max(limits.get("whole_s", 0.0) for limits in stated))
    for name in given:
        if name not in {"model_list", "credential_list", *SECTIONS}:
            carried.notes.append(note_on(name, name))
    carried.notes += _variables_lost(given)
    _compare(models, parts.pools, _Market(parts.known_as, sold_as), carried.notes)
    made = {"models": models | patterns, "pools": parts.pools, "providers": parts.providers}
    carried.document = {name: part for name, part in made.items() if part} | carried.document
    carried.document["policies"] = _shares(models, groups)
    return carried


@dataclass(slots=True)
class _Parts:
    """Pools, providers and deployments collected from the entries of the file."""

    patterns: dict[str, str]
    groups: ModelGroups
    gpu: Mapping[str, Any]
    environ: Mapping[str, str]
    limited: set[str] = field(default_factory=set)  # `rpm`, `tpm`, if a deployment states them
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    known_as: dict[str, str] = field(default_factory=dict)  # by target: its name in price lookups

    def add(
        self, carried: ImportedConfig, place: str, entry: Mapping[str, Any], found: Deployment
    ) -> None:
        info, name = section_of(entry.get("model_info")), str(entry["model_name"])
        mode = info.get("mode")
        if isinstance(mode, str) and mode not in SPOKEN:
            words = f"`mode: {mode}`: nothing here is asked so"
            carried.notes.append(lost(place, words, ImportLoss.MODELS))
            return
        carried.notes += notes_on(place, entry, found, self.environ)
        self.limited |= {"rpm", "tpm"} & {*entry, *section_of(entry.get("litellm_params")), *info}
        if "*" in name or "*" in found.model:
            carried.notes += notes_on_pattern(place, entry)
            if not _passed_through(self.patterns, self.providers, name, found):
                carried.notes.append(lost(f"{place}.model_name", _PATTERN, ImportLoss.MODELS))
            return
        carried.prices += _imported_prices(entry, found)
        given = section_of(entry.get("litellm_params"))
        stated = section_of(given.get("extra_body"))
        extra = {key: value for key, value in stated.items() if key not in MANAGED_MEMBERS}
        for key in stated.keys() - extra.keys():
            words = "the gateway states it itself, or it changes what a request may cost"
            here = f"{place}.litellm_params.extra_body.{key}"
            carried.notes.append(lost(here, words, ImportLoss.REQUESTS))
        if found.own:
            found = _pool(self.pools, found, self.gpu, extra)
            engine = self.pools[found.name]["engine"]
            if isinstance(limit := info.get("max_input_tokens"), int) and limit > 0:
                engine["context_tokens"] = limit
        else:
            found = _provider(self.providers, found, extra)
        if not found.own and found.price_name:
            self.known_as[found.target] = found.price_name
        self.groups.deployments.setdefault(name, []).append(_deployment_of(entry, found))

    def provider_named(self, name: str) -> str | None:
        """Return our name of a provider that LiteLLM names."""
        ours = SAME_AS.get(name, name)
        return ours if ours in self.providers else None


_OF_ENGINES = ("served_name", "api_key_env", "extra_body")
_PATTERN = (
    "a pattern must pass the names of one provider through, at its own address and with one key: "
    "`openai/*` as `openai/*`"
)
_NO_ADDRESS = (
    "invalid base URL: write it by http or https, without credentials and query, as "
    "https://llm.example.com/v1"
)
_CREDENTIAL = (
    "`credential_list` has no credential of that name: write the address and the variable of the "
    "key into this entry"
)


def _stated_variables(variables: object) -> dict[str, str]:
    """Return the variables that the file itself sets; only addresses are read."""
    return {
        str(name): value
        for name, value in section_of(variables).items()
        if isinstance(value, str) and not value.startswith(ENVIRON)
    }


def _variables_lost(given: Mapping[str, Any]) -> Iterator[ImportNote]:
    """Yield notes on addresses in LiteLLM's environment that no entry names."""
    named = str(given.get("model_list")) + str(given.get("credential_list"))
    for name in map(str, section_of(given.get("environment_variables"))):
        if name.upper().endswith(ADDRESSES) and f"{ENVIRON}{name}" not in named:
            words = "says where requests go: write it as `base_url` of the provider it is for"
            yield lost(f"environment_variables.{name}", words, ImportLoss.REQUESTS)


def _nobody(place: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> ImportNote:
    if CREDENTIAL in section_of(entry.get("litellm_params")):
        return lost(f"{place}.litellm_params.{CREDENTIAL}", _CREDENTIAL, ImportLoss.MODELS)
    variable = address_in_environ(entry)
    if variable is not None and not environ.get(variable):
        words = f"its address is in `{variable}`, which is not set here: set it, and import again"
        return lost(f"{place}.litellm_params.api_base", words, ImportLoss.MODELS)
    address = stated_address(entry) if variable is None else environ.get(variable)
    if address is not None and not is_address(address):
        return lost(f"{place}.litellm_params.api_base", _NO_ADDRESS, ImportLoss.MODELS)
    refused = refusal_of(entry)
    if refused is not None:
        return lost(f"{place}.litellm_params.model", refused, ImportLoss.MODELS)
    return lost(place, "nobody can tell from `model` who serves it, or where", ImportLoss.MODELS)


def _pool(
    pools: dict[str, dict[str, Any]],
    found: Deployment,
    gpu: Mapping[str, Any],
    extra: Mapping[str, Any],
) -> Deployment:
    """Add an engine to the pool with the same model, key and `extra` members, or to a new one."""
    stated = {"served_name": found.model, "api_key_env": found.key, "extra_body": dict(extra)}
    stated = {key: value for key, value in stated.items() if value}
    for name in _names(found.name):
        made: dict[str, Any] = {"kind": VLLM, **stated, "endpoints": []}
        engine = pools.setdefault(name, {"engine": made, "gpu": dict(gpu)})["engine"]
        if {key: engine[key] for key in _OF_ENGINES if key in engine} == stated:
            break
    if found.base_url and found.base_url not in engine["endpoints"]:
        engine["endpoints"].append(found.base_url)
    if found.serves:
        engine["kinds"] = [found.serves]
    return found._replace(name=name)


def _provider(
    providers: dict[str, dict[str, Any]], found: Deployment, extra: Mapping[str, Any] = _NOTHING
) -> Deployment:
    """Return the provider with the same address, key, price and `extra` members, or a new one."""
    for name in _names(found.name):
        price_name, base_url, prefix = found.price_name, found.base_url, found.litellm_prefix
        if name != found.name:  # under another name its address and prices are unknown
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
            "extra_body": dict(extra) or None,
        }
        stated = {key: value for key, value in stated.items() if value is not None}
        account = _account_of(providers, found) if name not in providers else None
        shared = {} if account is None else {"billed_with": account}
        provider = providers.setdefault(name, stated | shared)
        if {key: value for key, value in provider.items() if key not in _ADDED} == stated:
            break
    only = ADAPTED_KINDS.get(found.litellm_prefix or found.name, frozenset())
    if found.serves is not None and (only or found.serves not in PROVIDER_DEFAULT):
        kinds = provider.setdefault("kinds", [] if only else list(PROVIDER_DEFAULT))
        if found.serves not in kinds:
            kinds.append(found.serves)
    return found._replace(name=name)


_ADDED = ("kinds", "billed_with")  # members added to the entry's provider


def _account_of(providers: Mapping[str, Mapping[str, Any]], found: Deployment) -> str | None:
    """Return the provider with a deployment's address and key, which share one bill."""
    names = takewhile(providers.__contains__, _names(found.name))
    keyed = (name for name in names if providers[name].get("api_key_env") == found.key)
    return None if found.key is None else next(keyed, None)


def _passed_through(
    patterns: dict[str, str], providers: dict[str, dict[str, Any]], name: str, found: Deployment
) -> bool:
    """Add a pass-through pattern; return False if it has none here, and drop its provider."""
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
    """Yield the standard price, then prices by tier or prompt size."""
    both = {**section_of(entry.get("model_info")), **section_of(entry.get("litellm_params"))}
    rows: dict[tuple[str, int], dict[str, Decimal]] = {}
    for name, value in both.items():
        step, price = price_step(name), number_of(value)
        if step is not None and price is not None:
            rows.setdefault((step.tier, step.above_tokens), {})[step.kind] = price
    if found.own:
        return
    for (tier, above), kinds in sorted(rows.items()):
        listed = tuple((kind, kinds[kind]) for kind in COSTS if kind in kinds)
        yield ImportedPrice(found.price_name or found.target, listed, tier, above)


def _deployment_of(entry: Mapping[str, Any], found: Deployment) -> ModelDeployment:
    """Return the deployment with its numbers within its model name."""
    given = section_of(entry.get("litellm_params"))

    def number(name: str) -> float | None:
        value = number_of(given.get(name))
        return None if value is None else float(value)

    weight = number("weight") or number("rpm") or number("tpm")
    return ModelDeployment(
        found.target, number("order"), weight, number("timeout"), number("stream_timeout")
    )


def _shares(models: Mapping[str, Any], groups: ModelGroups) -> list[dict[str, Any]]:
    """Return a rule for each model with weighted deployments, and one for all others."""
    last = {"name": "default", "otherwise": "best_effort"}
    rules = [
        {**last, "name": f"shares-{name}", "match": {"models": [name]}, "weights": weights}
        for name in models
        if "targets" in models[name] and (weights := groups.weights(name))
    ]
    return [*rules, last]


class _Market(NamedTuple):
    """Price lookups: names of APIs, and the API that sells an engine's weights."""

    known_as: Mapping[str, str]  # by target; default: the target's own name
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
    """Add comparators, which value an own engine's answer at what an API would charge."""
    for name, model in models.items():
        reached = _reached(model)
        own = [target for target in reached if target.startswith("pool:")]
        if not own:
            continue
        apis = market.names_of_targets(reached)
        served = pools[own[0].removeprefix("pool:")]["engine"]["served_name"]
        sold = None if apis else market.sold_as(served)
        if apis or sold:
            model["compare_with"] = apis or [sold]
        if sold:
            words = f"compared with `{sold}`, the cheapest API with this name: check the choice"
            notes.append(ImportNote(f"models.{name}.compare_with", words))
        elif not apis:
            words = "needs the name of an API model to compare the engine's cost with"
            notes.append(ImportNote(f"models.{name}.compare_with", words))


def _reached(model: Mapping[str, Any]) -> list[str]:
    """Return the targets of all stages."""
    later = [target for stage in model.get("then", ()) for target in stage["targets"]]
    return [*model.get("targets", ()), *later]


def _entries(value: object) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, list) else []
    return [entry for entry in found if isinstance(entry, Mapping)]
