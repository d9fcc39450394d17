"""Model list with details: serving targets, prices, context and features of each model.

A key sees only what it may use: with requests that stay inside, only own engines. Unknown prices
and limits are `null`; what a price does not charge for is absent. Prices are those in force now,
with the regional surcharge. Own engines cost hours and have no token price.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.config.settings import Settings, resolve_model
from gateway.fleet.fleet import Fleet, Target
from gateway.kinds import KINDS
from gateway.request.model_list import ShownLimits, card
from gateway.request.model_retirement import find_retirement
from ledger.identity.keys import Identity
from ledger.journals.token_kinds import PER_TOKEN, PER_UNIT
from ledger.money import usd_exact
from ledger.prices.quotes import PriceQuote
from router.request_kinds import RequestKind
from router.types import Feature

_MILLION = 10**6
_DECODED = frozenset((RequestKind.CHAT, RequestKind.COMPLETION))
# Names of token prices in LiteLLM's map.
_LITELLM_COSTS = {kind.price: kind.map_terms[0] for kind in PER_TOKEN if kind.map_terms}
_UNITS = {kind.price: f"usd_per_{kind.price.removesuffix('_pusd')}" for kind in PER_UNIT}


class CatalogSources(NamedTuple):
    """Sources of current prices and limits."""

    quote_of: Callable[[Target], PriceQuote | None]
    context_of: Callable[[Target], int | None]


class ModelCatalog:
    """The model list of one worker."""

    def __init__(self, settings: Settings, fleet: Fleet, sources: CatalogSources) -> None:
        self._settings, self._fleet, self._sources = settings, fleet, sources

    def card(self, name: str, created_s: int, identity: Identity) -> dict[str, Any]:
        """Return OpenAI's model object, with the details in a `breakeven` member."""
        known = self._describe(list(self._targets(name, identity)))
        retirement = find_retirement(self._settings, name)
        if retirement is not None:
            known["retires"] = retirement.retires.isoformat()
            known["successor"] = retirement.successor
        return {**card(name, created_s), "breakeven": known}

    def cards(self, names: Sequence[str], created_s: int, identity: Identity) -> dict[str, Any]:
        """Return a list of model objects."""
        return {
            "object": "list",
            "data": [self.card(name, created_s, identity) for name in names],
        }

    def limits(self, name: str, identity: Identity) -> ShownLimits:
        """Return the model's context and longest answer, as its model object states them."""
        known = self._describe(list(self._targets(name, identity)))
        return ShownLimits(known["context_tokens"], known["max_output_tokens"])

    def model_info(self, names: Sequence[str], identity: Identity) -> dict[str, Any]:
        """Return LiteLLM's `/model/info`: one entry for each target of each model."""
        return {
            "data": [
                self._litellm_entry(name, target)
                for name in names
                for target in self._targets(name, identity)
            ]
        }

    def _targets(self, name: str, identity: Identity) -> Iterator[Target]:
        """Yield a model's targets; none for a pattern (`openai/*`), whose names are not listed."""
        found = resolve_model(self._settings, name)
        if found is None or name.endswith("/*"):
            return
        resolved, model = found
        inside = "internal_only" in (identity.residency, model.residency)
        seen: set[tuple[str | None, str]] = set()
        for target in self._fleet.targets(resolved, model):
            place = (target.pool, target.upstream_model if target.own else target.name)
            if place not in seen and (target.own or not inside):  # one replica is listed for all
                seen.add(place)
                yield target

    def _describe(self, targets: Sequence[Target]) -> dict[str, Any]:
        lines = [self._line(target) for target in targets]
        priced = [line["prices"] for line in lines if line["served_by"] == "api"]
        same = priced and all(prices == priced[0] for prices in priced)
        return {
            "served_by": sorted({line["served_by"] for line in lines}),
            "kinds": sorted({kind for line in lines for kind in line["kinds"]}),
            "context_tokens": _largest(line["context_tokens"] for line in lines),
            "max_output_tokens": _largest(line["max_output_tokens"] for line in lines),
            "prices": priced[0] if same else None,  # if APIs differ, see each target
            "modalities": _modalities(targets),
            "features": sorted({str(word) for target in targets for word in _features(target)}),
            "targets": lines,
        }

    def _line(self, target: Target) -> dict[str, Any]:
        quote = None if target.own else self._sources.quote_of(target)
        return {
            "target": f"pool:{target.pool}" if target.own else target.name,
            "served_by": "own" if target.own else "api",
            "kinds": sorted(str(kind) for kind in target.kinds),
            "context_tokens": self._context(target, quote),
            "max_output_tokens": _longest(quote),
            "prices": None if quote is None else prices_of(quote),
            "unread_charges": [] if quote is None else list(quote.unread),
            "simulated": target.simulated,
        }

    def _context(self, target: Target, quote: PriceQuote | None) -> int | None:
        if target.own:
            return self._sources.context_of(target)
        stated = 0 if quote is None or quote.limits is None else quote.limits.stated_context
        return target.context_tokens or stated or None

    def _litellm_entry(self, name: str, target: Target) -> dict[str, Any]:
        quote = None if target.own else self._sources.quote_of(target)
        context, longest = self._context(target, quote), _longest(quote)
        inputs = _modalities([target])["input"]
        info: dict[str, Any] = {
            "id": f"{name}:{target.name}",
            "key": target.upstream_model,
            "db_model": False,
            "mode": mode_of(target.kinds, quote),
            "litellm_provider": target.provider or f"pool:{target.pool}",
            "max_tokens": longest,
            "max_input_tokens": context,
            "max_output_tokens": longest,
            **dict.fromkeys(_LITELLM_COSTS.values()),
            "supports_function_calling": Feature.TOOLS in _features(target),
            "supports_response_schema": Feature.JSON_SCHEMA in _features(target),
            "supports_vision": "image" in inputs,
            "supports_reasoning": Feature.REASONING in _features(target),
        }
        if quote is not None:
            for kind, pusd in _rates(quote).items():
                if kind in _LITELLM_COSTS:
                    info[_LITELLM_COSTS[kind]] = pusd / 10**18  # per million tokens
        return {
            "model_name": name,
            "litellm_params": {"model": name},
            "model_info": info,
        }


def mode_of(kinds: Collection[RequestKind], quote: PriceQuote | None) -> str | None:
    """Return LiteLLM's mode of a model: that of the first kind that its target serves.

    A provider serves more kinds than each of its models does, so a price only in units takes
    precedence.
    """
    facts = [spec.catalog for kind, spec in KINDS.items() if kind in kinds and spec.catalog.mode]
    if quote is not None and not _rates(quote):
        terms = quote.price.terms
        facts = [fact for fact in facts if fact.price and getattr(terms, fact.price)] or facts
    return facts[0].mode if facts else None


def prices_of(quote: PriceQuote) -> dict[str, str]:
    """Return exact prices in dollars: per million tokens of each kind, per unit, per request."""
    terms = quote.price.terms
    prices = {f"{kind}_usd_per_million": usd_exact(pusd) for kind, pusd in _rates(quote).items()}
    units = {name: getattr(terms, price) for price, name in _UNITS.items()}
    units["usd_per_request"] = terms.request_pusd
    for name, pusd in units.items():
        if pusd:
            prices[name] = usd_exact(pusd * (_MILLION + terms.uplift_ppm) // _MILLION)
    return prices


def _rates(quote: PriceQuote) -> dict[str, int]:
    """Return pico-USD per million tokens, without rates of zero where the price has units."""
    terms = quote.price.terms
    by_units = any(getattr(terms, price) for price in _UNITS) or terms.request_pusd
    rates = {kind.price: getattr(terms.rates, kind.price) for kind in PER_TOKEN}
    return {
        name: pusd * (_MILLION + terms.uplift_ppm)
        for name, pusd in rates.items()
        if pusd > 0 or (pusd == 0 and not by_units)
    }


def _features(target: Target) -> Collection[Feature]:
    """Return the features of answers in tokens; empty for a target that makes none."""
    return target.features if _DECODED & target.kinds else ()


def _modalities(targets: Sequence[Target]) -> Mapping[str, list[str]]:
    facts = [KINDS[kind].catalog for target in targets for kind in target.kinds]
    takes, gives = {fact.takes for fact in facts}, {fact.gives for fact in facts}
    if any(fact.sees for fact in facts) and any(
        Feature.IMAGES in item.features for item in targets
    ):
        takes.add("image")
    return {"input": sorted(takes), "output": sorted(filter(None, gives))}


def _longest(quote: PriceQuote | None) -> int | None:
    return None if quote is None or quote.limits is None else quote.limits.output_tokens


def _largest(found: Iterator[int | None] | Any) -> int | None:
    return max((item for item in found if item is not None), default=None)
