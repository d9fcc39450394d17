"""Provider kinds: the wire formats of external APIs, and all that anybody asks of each.

`PROVIDER_KINDS` is the one table; `providers.NAME.kind` of the configuration chooses from it. A new
wire format is its client (a class with the methods of `backends.base.Backend`) and an entry here.
A client that is costly to import is imported by its factory: LiteLLM takes 200 MB and seconds.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backends.address_policy import AddressPolicy
    from backends.base import Backend
    from backends.http import HttpClient
    from backends.openai import Credentials

OPENAI, ANTHROPIC, LITELLM = "openai", "anthropic", "litellm"
DEFAULT_KIND: Final = OPENAI  # of a provider that names none
ADAPTER_KIND: Final = LITELLM  # of a provider that no kind has an address for
# Public base addresses, as listed in the provider table of LiteLLM 1.106.2 (2026-11) and the
# providers' own references.
BASE_URLS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "deepseek": "https://api.deepseek.com/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "groq": "https://api.groq.com/openai/v1",
    "hyperbolic": "https://api.hyperbolic.xyz/v1",
    "mistral": "https://api.mistral.ai/v1",
    "moonshot": "https://api.moonshot.ai/v1",
    "nvidia": "https://integrate.api.nvidia.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "sambanova": "https://api.sambanova.ai/v1",
    "together": "https://api.together.ai/v1",
    "xai": "https://api.x.ai/v1",
}
# Where Anthropic's Messages are spoken, from the providers' own references (2026-11).
MESSAGES_URLS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com/anthropic",
    "moonshot": "https://api.moonshot.ai/anthropic",
}
# Betas that clients may ask for where nobody says which: they change neither a price nor who may
# see what. Left out are longer contexts, faster modes, other models, kept files and skills.
USUAL_BETAS: Final = (
    "advanced-tool-use-*", "citations-*", "claude-code-*", "code-execution-*", "compact-*",
    "computer-use-*", "context-management-*", "effort-*", "extended-cache-ttl-*",
    "fine-grained-tool-streaming-*", "interleaved-thinking-*", "max-tokens-3-5-sonnet-*",
    "mcp-client-*", "output-128k-*", "pdfs-*", "prompt-caching-*", "search-results-*",
    "structured-outputs-*", "token-counting-*", "token-efficient-tools-*", "tool-examples-*",
    "tool-search-tool-*", "web-fetch-*", "web-search-*",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProviderSite:
    """One provider as its client sees it. `prefix` is its name where one client reaches many."""

    prefix: str
    base_url: str | None
    credentials: "Credentials"
    reach: "AddressPolicy"
    http: "HttpClient"  # shared by all providers of a worker
    betas: tuple[str, ...] = ()  # that clients may ask for, of a kind that has betas


@dataclass(frozen=True, slots=True)
class KeyVariables:
    """Environment variables of a kind.

    `usual`: the variable with the key, by provider. `beside`: what is read next to a key that the
    configuration names. `prefixes`: further ones by how they begin. `finds_keys`: without a named
    key the client looks for the vendor's own variables, so that none can be left out.
    """

    usual: Mapping[str, str]
    beside: frozenset[str]
    prefixes: tuple[str, ...]
    finds_keys: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """All that anybody asks of a wire format. An entry that lacks a field is a type error.

    `load` is called once in each worker before it serves. `addresses` are public base URLs by
    provider; a client that `finds_address` knows its own. `serves`: request kinds, `None` for all.
    `fetches_media`: the provider fetches what an address in a request names, not this process.
    `marks_cache`: whether what to cache is marked in the messages, `reads_files`: whether chat's
    `file` parts are read, both by prefix. `speaks_messages`: a request in Anthropic's Messages goes
    there as it is. `lacks`: features that its API has no form for. `named_only`: a provider's name
    alone does not choose it.
    """

    title: str
    client: "Callable[[ProviderSite], Backend]"
    load: Callable[[], object] | None
    variables: KeyVariables
    addresses: Mapping[str, str]
    finds_address: bool
    serves: frozenset[str] | None
    takes_batches: bool
    fetches_media: bool
    marks_cache: Callable[[str], bool]
    reads_files: Callable[[str], bool]
    speaks_messages: bool
    lacks: frozenset[str]
    named_only: bool

    def can_serve(self, request_kind: str) -> bool:
        return self.serves is None or request_kind in self.serves


def kind_for(name: str) -> str:
    """Return the kind that knows this provider's address, else the one that adapts to any."""
    known = (
        kind
        for kind, entry in PROVIDER_KINDS.items()
        if name in entry.addresses and not entry.named_only
    )
    return next(known, ADAPTER_KIND)


def _openai(site: ProviderSite) -> "Backend":
    from backends.openai import OpenAIBackend  # noqa: PLC0415  (with an HTTP client)

    assert site.base_url is not None  # checked: this kind does not find its address
    return OpenAIBackend(site.base_url, site.credentials, client=site.http, reach=site.reach)


def _anthropic(site: ProviderSite) -> "Backend":
    from backends.anthropic import AnthropicBackend  # noqa: PLC0415  (with an HTTP client)

    assert site.base_url is not None  # checked: this kind does not find its address
    return AnthropicBackend(
        site.base_url, site.credentials, client=site.http, reach=site.reach, betas=site.betas
    )


def _litellm(site: ProviderSite) -> "Backend":
    from backends.litellm import LiteLLMBackend  # noqa: PLC0415  (with httpx: 6 MB)

    return LiteLLMBackend(site.prefix, site.credentials, base_url=site.base_url, reach=site.reach)


def _load_litellm() -> object:
    return importlib.import_module("backends.litellm").load()


def _is_never_marked(_prefix: str) -> bool:
    return False


def _is_always(_prefix: str) -> bool:
    return True


PROVIDER_KINDS: Final[Mapping[str, ProviderKind]] = {
    OPENAI: ProviderKind(
        title="an OpenAI-compatible client",
        client=_openai,
        load=None,
        variables=KeyVariables(
            usual={
                "openai": "OPENAI_API_KEY",
                "groq": "GROQ_API_KEY",
                "mistral": "MISTRAL_API_KEY",
                "deepseek": "DEEPSEEK_API_KEY",
                "deepinfra": "DEEPINFRA_API_KEY",
                "together": "TOGETHER_API_KEY",
                "fireworks": "FIREWORKS_API_KEY",
                "openrouter": "OPENROUTER_API_KEY",
                "xai": "XAI_API_KEY",
            },
            beside=frozenset(),
            prefixes=(),
            finds_keys=False,
        ),
        addresses=BASE_URLS,
        finds_address=False,
        serves=None,
        takes_batches=True,
        fetches_media=True,
        marks_cache=_is_never_marked,
        reads_files=frozenset({"openai", "openrouter"}).__contains__,
        speaks_messages=False,
        lacks=frozenset(),
        named_only=False,
    ),
    ANTHROPIC: ProviderKind(
        title="Anthropic's Messages",
        client=_anthropic,
        load=None,
        variables=KeyVariables(
            usual={"anthropic": "ANTHROPIC_API_KEY"},
            beside=frozenset(),
            prefixes=(),
            finds_keys=False,
        ),
        addresses=MESSAGES_URLS,
        finds_address=False,
        serves=frozenset({"chat"}),
        takes_batches=False,
        fetches_media=True,
        marks_cache=_is_always,
        reads_files=_is_always,
        speaks_messages=True,
        lacks=frozenset({"logprobs", "n"}),
        named_only=True,
    ),
    LITELLM: ProviderKind(
        title="LiteLLM's adapter",
        client=_litellm,
        load=_load_litellm,
        variables=KeyVariables(
            usual={"gemini": "GEMINI_API_KEY"},
            beside=frozenset(
                {
                    "AWS_REGION", "AWS_REGION_NAME", "AZURE_API_VERSION", "VERTEXAI_LOCATION",
                    "VERTEXAI_PROJECT",
                }
            ),
            prefixes=("LITELLM_LO",),
            finds_keys=True,
        ),
        addresses={},
        finds_address=True,
        serves=frozenset(
            {"chat", "completion", "embedding", "moderation", "speech", "image_generation"}
        ),
        takes_batches=False,
        fetches_media=False,
        # What LiteLLM translates for these it translates with `cache_control`.
        marks_cache=frozenset({"anthropic", "bedrock", "vertex_ai"}).__contains__,
        reads_files=frozenset({
            "anthropic", "azure", "bedrock", "gemini", "openai", "openrouter", "vertex_ai",
        }).__contains__,
        speaks_messages=False,
        lacks=frozenset(),
        named_only=False,
    ),
}  # fmt: skip
