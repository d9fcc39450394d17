"""Conversion of an entry of a LiteLLM proxy's `model_list` to a provider or pool target.

LiteLLM writes provider and model in one word, `azure/my-deployment`, with address and key in the
entry. Here address and key belong to a provider, which entries with the same ones share. A vLLM in
the own network becomes a pool.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from backends.origin import Origin
from backends.provider_refusals import KINDS as ADAPTED_KINDS
from backends.provider_refusals import REFUSED
from backends.providers import (
    ADAPTER_KIND,
    ANTHROPIC,
    BASE_URLS,
    DEFAULT_KIND,
    PROVIDER_KINDS,
    kind_for,
    quirks_of,
)
from backends.quirks import NO_QUIRKS
from gateway.config.served_kinds import can_engines_serve
from gateway.config.starter import PROVIDERS
from ledger.journals.token_kinds import PER_TOKEN

# LiteLLM's name where ours differs; all of them use OpenAI's HTTP API.
SAME_AS = {
    "fireworks_ai": "fireworks", "nvidia_nim": "nvidia", "text-completion-openai": "openai",
    "together_ai": "together",
}  # fmt: skip
VLLM = frozenset({"hosted_vllm", "vllm"})
ANY_OPENAI = frozenset({"custom_openai", "openai", "openai_like", "text-completion-openai"})
KINDS = {
    "audio_transcription": "transcription", "embedding": "embedding", "rerank": "rerank",
    "moderation": "moderation", "image_generation": "image_generation", "audio_speech": "speech",
    "image_edit": "image_edit",
}  # fmt: skip
TRANSCRIBED = KINDS["audio_transcription"]
SPOKEN = frozenset({*KINDS, "chat", "completion", "responses"})  # LiteLLM's modes with a route here
# By kind: served through our own wire clients instead of LiteLLM's adapter.
VENDORS = {
    "rerank": {
        "cohere": "https://api.cohere.com/v2",
        "jina_ai": "https://api.jina.ai/v1",
        "voyage": "https://api.voyageai.com/v1",
    },
}
# Without a key in the file, LiteLLM reads the vendor's variable.
_USUAL_KEYS = {provider.name: provider.variable for provider in PROVIDERS}
# LiteLLM's name of the price per token, by our token kinds.
COSTS = {
    kind.field: kind.map_terms[0]
    for kind in sorted(PER_TOKEN, key=lambda kind: kind.price_as is not None)
}
_TERMS = {term: kind.field for kind in PER_TOKEN for term in kind.map_terms}
_TIERS = {"batches": "batch", "priority": "priority", "flex": "flex"}
_STEP = re.compile(
    rf"^({'|'.join(sorted(_TERMS, key=len, reverse=True))})"
    rf"(?:_above_(\d+)(k?)_tokens)?(?:_({'|'.join(_TIERS)}))?$"
)
# LiteLLM's model name prefixes that choose a protocol.
PROTOCOLS = {
    "openai": frozenset({"responses"}),
    "azure": frozenset({"responses", "o_series", "gpt5_series"}),
    "bedrock": frozenset({"converse", "converse_like", "invoke", "async_invoke"}),
}
ENVIRON = "os.environ/"
CREDENTIAL = "litellm_credential_name"
_OWN_NAMES = (".internal", ".local", ".lan", ".svc", ".cluster.local")


class Deployment(NamedTuple):
    """Converted entry; `price_name` is its price book name if not `provider/model`."""

    model: str  # upstream model name
    name: str  # name of its provider or pool
    own: bool
    kind: str  # provider kind of `PROVIDER_KINDS`
    base_url: str | None
    key: str | None  # variable that holds the key
    key_in_file: bool
    serves: str | None  # `embedding`, ...; None: the default kinds
    price_name: str | None
    litellm_prefix: str | None

    @property
    def target(self) -> str:
        return f"pool:{self.name}" if self.own else f"{self.name}/{self.model}"


def credentials_of(given: object) -> dict[str, Mapping[str, Any]]:
    """Return LiteLLM's `credential_list` as members by name, including addresses."""
    found = (
        [value for value in given if isinstance(value, Mapping)] if isinstance(given, list) else []
    )
    return {
        str(credential.get("credential_name")): section_of(credential.get("credential_values"))
        for credential in found
    }


def with_credential(
    entry: Mapping[str, Any], credentials: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the entry with its credential's members; unchanged for an unknown credential."""
    given = section_of(entry.get("litellm_params"))
    known = credentials.get(str(given.get(CREDENTIAL)))
    if known is None:
        return entry
    own = {name: value for name, value in given.items() if name != CREDENTIAL}
    return {**entry, "litellm_params": {**known, **own}}


class PriceStep(NamedTuple):
    """Rate of a token kind, from a number of prompt tokens on, in a service tier."""

    kind: str
    above_tokens: int
    tier: str


def price_step(name: str) -> PriceStep | None:
    """Return the rate that LiteLLM's name stands for; `None` for other names."""
    match = _STEP.match(name)
    if match is None:
        return None
    term, above, thousands, tier = match.groups()
    tokens = int(above or 0) * (1000 if thousands else 1)
    return PriceStep(_TERMS[term], tokens, "" if tier is None else _TIERS[tier])


def protocol_of(given: Mapping[str, Any]) -> str | None:
    """Return the protocol in front of the model's name, or `None`."""
    prefix, _, model = str(given.get("model") or "").partition("/")
    provider = _text(given.get("custom_llm_provider")) or prefix
    if provider != prefix:
        model = f"{prefix}/{model}"
    protocol, slash, name = model.partition("/")
    return protocol if slash and name and protocol in PROTOCOLS.get(provider, ()) else None


def address_in_environ(entry: Mapping[str, Any]) -> str | None:
    """Return the variable that holds the entry's address; `None` without one."""
    base_url = _base_url(section_of(entry.get("litellm_params")))
    if base_url is None or not base_url.startswith(ENVIRON):
        return None
    return base_url.removeprefix(ENVIRON)


def stated_address(entry: Mapping[str, Any]) -> str | None:
    """Return the address in the entry as written."""
    return _base_url(section_of(entry.get("litellm_params")))


def is_address(base_url: str) -> bool:
    """Return whether a URL is HTTP(S) with nothing but a path after the host."""
    try:
        Origin.parse(base_url)
    except ValueError:
        return False
    return True


def deployment(
    entry: Mapping[str, Any],
    provider_of: Callable[[str], str | None],
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Deployment | None:
    """Convert an entry; `None` if its provider or address is unknown.

    `provider_of` is LiteLLM's own guess for a bare name. `environ` is read for addresses only.
    """
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    prefix, model = _served_by(given, provider_of)
    model = model.removeprefix(f"{protocol_of(given)}/")
    base_url, variable = _base_url(given), address_in_environ(entry)
    if variable is not None:
        base_url = _text(environ.get(variable))
        if base_url is None:
            return None  # a wrong guess would send prompts to another vendor
    if not prefix or not model or (prefix == "*" and base_url is None):
        return None
    if base_url is not None and not is_address(base_url):
        return None
    only = ADAPTED_KINDS.get(prefix, frozenset())
    serves = KINDS.get(str(info.get("mode") or given.get("mode")), next(iter(sorted(only)), None))
    if prefix in REFUSED or (serves == TRANSCRIBED and not can_transcribe(prefix)):
        return None
    own = prefix in VLLM or (prefix in ANY_OPENAI and base_url is not None and _is_own(base_url))
    own = own and (serves is None or can_engines_serve(serves))
    ours = SAME_AS.get(prefix, prefix)
    kind = DEFAULT_KIND if own or prefix in ANY_OPENAI else _kind_of(ours, serves, base_url)
    if serves is not None and not PROVIDER_KINDS[kind].can_serve(serves):
        base_url, kind = base_url or VENDORS.get(serves, {}).get(prefix), DEFAULT_KIND
        if base_url is None or serves not in VENDORS:
            return None
    name = ours if base_url is None else _name_of(ours, base_url, model, own=own)
    key, in_file = _key(given.get("api_key"), name)
    if key is None and not own and base_url in (None, _home(ours)):
        key = _USUAL_KEYS.get(ours) if given.get("api_key") is None else None
    base_model = _text(info.get("base_model"))
    return Deployment(
        model=model,
        name=name,
        own=own,
        kind=kind,
        base_url=base_url,
        key=key,
        key_in_file=in_file,
        serves=serves,
        price_name=base_model or (f"{ours}/{model}" if name != ours and not own else None),
        litellm_prefix=prefix if PROVIDER_KINDS[kind].finds_address and name != prefix else None,
    )


def _served_by(
    given: Mapping[str, Any], provider_of: Callable[[str], str | None]
) -> tuple[str, str]:
    """Return LiteLLM's provider and model name; empty if unknown.

    A credential that is missing from the file makes the provider unknown, too.
    """
    word, stated = str(given.get("model") or ""), _text(given.get("custom_llm_provider"))
    if word.startswith(ENVIRON) or CREDENTIAL in given:
        return "", ""
    if stated is not None:
        return stated, word.removeprefix(f"{stated}/")
    prefix, slash, model = word.partition("/")
    if slash or word == "*":
        return prefix, model
    return provider_of(word) or "", word


def _base_url(given: Mapping[str, Any]) -> str | None:
    return _text(given.get("api_base") or given.get("base_url"))


def can_transcribe(prefix: str) -> bool:
    """Return whether a provider takes audio: through a known adapter, else as OpenAI does."""
    speaks = prefix in ANY_OPENAI | VLLM or kind_for(SAME_AS.get(prefix, prefix)) == DEFAULT_KIND
    return speaks or TRANSCRIBED in ADAPTED_KINDS.get(prefix, ())


def refusal_of(entry: Mapping[str, Any]) -> str | None:
    """Return why LiteLLM's provider name of an entry cannot be called; `None` if it can."""
    prefix, _ = _served_by(section_of(entry.get("litellm_params")), lambda _: None)
    return f"`{prefix}` {REFUSED[prefix]}" if prefix in REFUSED else None


def _kind_of(name: str, serves: str | None = None, base_url: str | None = None) -> str:
    """Return the provider kind for LiteLLM's name; Anthropic has its own wire dialect.

    With its own address, a name keeps its differences from OpenAI's API.
    """
    if base_url not in (None, BASE_URLS.get(name)) and quirks_of(name) != NO_QUIRKS:
        return ADAPTER_KIND
    if name == ANTHROPIC and (serves is None or PROVIDER_KINDS[ANTHROPIC].can_serve(serves)):
        return ANTHROPIC
    return kind_for(name)


def _home(name: str) -> str | None:
    """Return a provider's public address; `None` if no kind knows one."""
    return PROVIDER_KINDS[_kind_of(name)].addresses.get(name)


def _name_of(ours: str, base_url: str, model: str, *, own: bool) -> str:
    """Return a pool's name from its model, or a provider's from the name in its address."""
    if own:
        return model.rpartition("/")[2]
    home = _home(ours)
    if home is not None and base_url.rstrip("/").removesuffix("/v1") == home.removesuffix("/v1"):
        return ours
    host = urlsplit(base_url).hostname or base_url
    return f"{ours}-{host}" if ours != "openai" else host


def _key(given: object, name: str) -> tuple[str | None, bool]:
    """Return the variable that holds the key, and whether the file contained the key itself."""
    word = _text(given)
    if word is None or word.lower() in {"none", "empty", "dummy", "fake", "sk-none"}:
        return None, False
    if word.startswith(ENVIRON):
        return word.removeprefix(ENVIRON), False
    return "".join(c if c.isalnum() else "_" for c in name).upper() + "_API_KEY", True


def _is_own(base_url: str) -> bool:
    """Return whether the address is in a private network or has a private name."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_OWN_NAMES)


def section_of(value: object) -> Mapping[str, Any]:
    """Return the mapping under a name; an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
