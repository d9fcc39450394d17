"""One entry of a LiteLLM proxy's `model_list`, as a target of ours: a provider's or a pool's.

LiteLLM writes who serves and what in one word, `azure/my-deployment`, and address and key beside
it. Here the address and the key belong to a provider, so entries that share them share it. What
vLLM serves in the own network is a pool.
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

# LiteLLM's word where ours differs; all of them speak OpenAI's HTTP.
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
# By kind: LiteLLM's adapter serves us at none of these; each has a path of its own that we speak.
VENDORS = {
    "rerank": {
        "cohere": "https://api.cohere.com/v2",
        "jina_ai": "https://api.jina.ai/v1",
        "voyage": "https://api.voyageai.com/v1",
    },
}
# Where a file names no key, LiteLLM takes it from the vendor's own variable.
_USUAL_KEYS = {provider.name: provider.variable for provider in PROVIDERS}
# By the kinds that prices have here, what LiteLLM calls its dollars a token.
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
# LiteLLM's words in front of a model's name that choose how its provider is spoken to.
PROTOCOLS = {
    "openai": frozenset({"responses"}),
    "azure": frozenset({"responses", "o_series", "gpt5_series"}),
    "bedrock": frozenset({"converse", "converse_like", "invoke", "async_invoke"}),
}
ENVIRON = "os.environ/"
CREDENTIAL = "litellm_credential_name"
_OWN_NAMES = (".internal", ".local", ".lan", ".svc", ".cluster.local")


class Deployment(NamedTuple):
    """`price_name`: what the price book calls it, where that is not `provider/model`."""

    model: str  # as the target calls it
    name: str  # of its provider, or its pool
    own: bool
    kind: str  # of the provider, as `PROVIDER_KINDS` has it
    base_url: str | None
    key: str | None  # the variable with it
    key_in_file: bool
    serves: str | None  # `embedding`, ...; None: whatever is usual
    price_name: str | None
    litellm_prefix: str | None

    @property
    def target(self) -> str:
        return f"pool:{self.name}" if self.own else f"{self.name}/{self.model}"


def credentials_of(given: object) -> dict[str, Mapping[str, Any]]:
    """LiteLLM's `credential_list`: what each name stands for, an address among it."""
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
    """The entry with what its credential stands for; as it is where nobody here knows that one."""
    given = section_of(entry.get("litellm_params"))
    known = credentials.get(str(given.get(CREDENTIAL)))
    if known is None:
        return entry
    own = {name: value for name, value in given.items() if name != CREDENTIAL}
    return {**entry, "litellm_params": {**known, **own}}


class PriceStep(NamedTuple):
    """A rate: of which kind of token, for prompts above how many tokens, in which tier."""

    kind: str
    above_tokens: int
    tier: str


def price_step(name: str) -> PriceStep | None:
    """Return what LiteLLM's name of a rate means; `None` of anything else."""
    match = _STEP.match(name)
    if match is None:
        return None
    term, above, thousands, tier = match.groups()
    tokens = int(above or 0) * (1000 if thousands else 1)
    return PriceStep(_TERMS[term], tokens, "" if tier is None else _TIERS[tier])


def protocol_of(given: Mapping[str, Any]) -> str | None:
    """The word for a protocol in front of the model's name, if there is one."""
    prefix, _, model = str(given.get("model") or "").partition("/")
    provider = _text(given.get("custom_llm_provider")) or prefix
    if provider != prefix:
        model = f"{prefix}/{model}"
    protocol, slash, name = model.partition("/")
    return protocol if slash and name and protocol in PROTOCOLS.get(provider, ()) else None


def address_in_environ(entry: Mapping[str, Any]) -> str | None:
    """The variable that the entry's address stands in; `None`: it states one, or has none."""
    base_url = _base_url(section_of(entry.get("litellm_params")))
    if base_url is None or not base_url.startswith(ENVIRON):
        return None
    return base_url.removeprefix(ENVIRON)


def stated_address(entry: Mapping[str, Any]) -> str | None:
    """Return the address that an entry states, as it stands there."""
    return _base_url(section_of(entry.get("litellm_params")))


def is_address(base_url: str) -> bool:
    """Whether requests can be sent there: by HTTP, with nothing but a path behind the host."""
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
    """`None` when nobody can tell who serves, or where.

    `provider_of`: LiteLLM's own guess at a bare name. `environ`: where addresses may stand.
    """
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    prefix, model = _served_by(given, provider_of)
    model = model.removeprefix(f"{protocol_of(given)}/")
    base_url, variable = _base_url(given), address_in_environ(entry)
    if variable is not None:
        base_url = _text(environ.get(variable))
        if base_url is None:
            return None  # a guess would send prompts to somebody else
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
    """(LiteLLM's word for who serves, what it calls the model); empty: nobody can tell.

    Where a credential leads that is not in the file is not known either.
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
    """Whether a sound can be sent there: by the adapter to a few, else as OpenAI takes it."""
    speaks = prefix in ANY_OPENAI | VLLM or kind_for(SAME_AS.get(prefix, prefix)) == DEFAULT_KIND
    return speaks or TRANSCRIBED in ADAPTED_KINDS.get(prefix, ())


def refusal_of(entry: Mapping[str, Any]) -> str | None:
    """Return why nobody could be asked under LiteLLM's name of an entry's provider."""
    prefix, _ = _served_by(section_of(entry.get("litellm_params")), lambda _: None)
    return f"`{prefix}` {REFUSED[prefix]}" if prefix in REFUSED else None


def _kind_of(name: str, serves: str | None = None, base_url: str | None = None) -> str:
    """Return the kind of a provider that LiteLLM names: Anthropic is spoken to in its own words.

    At an address of its own a name keeps what it wants otherwise than OpenAI does.
    """
    if base_url not in (None, BASE_URLS.get(name)) and quirks_of(name) != NO_QUIRKS:
        return ADAPTER_KIND
    if name == ANTHROPIC and (serves is None or PROVIDER_KINDS[ANTHROPIC].can_serve(serves)):
        return ANTHROPIC
    return kind_for(name)


def _home(name: str) -> str | None:
    """Return the public address of a provider, `None` where no kind knows one."""
    return PROVIDER_KINDS[_kind_of(name)].addresses.get(name)


def _name_of(ours: str, base_url: str, model: str, *, own: bool) -> str:
    """Return a pool's name by its model, or a provider's by the name in its address."""
    if own:
        return model.rpartition("/")[2]
    home = _home(ours)
    if home is not None and base_url.rstrip("/").removesuffix("/v1") == home.removesuffix("/v1"):
        return ours
    host = urlsplit(base_url).hostname or base_url
    return f"{ours}-{host}" if ours != "openai" else host


def _key(given: object, name: str) -> tuple[str | None, bool]:
    """(the variable that holds the key, whether the key itself stood in the file)."""
    word = _text(given)
    if word is None or word.lower() in {"none", "empty", "dummy", "fake", "sk-none"}:
        return None, False
    if word.startswith(ENVIRON):
        return word.removeprefix(ENVIRON), False
    return "".join(c if c.isalnum() else "_" for c in name).upper() + "_API_KEY", True


def _is_own(base_url: str) -> bool:
    """Whether the address lies in a network of one's own: private, or a name of such."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_OWN_NAMES)


def section_of(value: object) -> Mapping[str, Any]:
    """Return the mapping under a name; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
