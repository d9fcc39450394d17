"""Provider kinds: the wire formats of external APIs, and their properties.

`PROVIDER_KINDS` is the only table; `providers.NAME.kind` of the configuration selects from it. A
new wire format is a client (a class with the methods of `backends.base.Backend`) and an entry here.
An expensive client is imported by its factory: LiteLLM takes 200 MB and seconds.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from backends.origin import address_key
from backends.provider_table import LISTED, SPEAKS_CHAT
from backends.quirks import NO_QUIRKS, Quirks

if TYPE_CHECKING:
    from backends.address_policy import AddressPolicy
    from backends.base import Backend
    from backends.http import HttpClient
    from backends.openai import Credentials

OPENAI, ANTHROPIC, LITELLM = "openai", "anthropic", "litellm"
DEFAULT_KIND: Final = OPENAI  # of a provider that names none
ADAPTER_KIND: Final = LITELLM  # of a provider that no kind has an address for
# Short names, and addresses that differ from LiteLLM's, which has DeepSeek's beta address.
SHORT_NAMES: Mapping[str, str] = {
    "fireworks": "fireworks_ai", "nvidia": "nvidia_nim", "together": "together_ai",
}  # fmt: skip
_STATED_URLS: Mapping[str, str] = {
    "deepseek": "https://api.deepseek.com/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
# Public base addresses of providers with OpenAI's chat API.
BASE_URLS: Mapping[str, str] = {
    **{name: entry.base_url for name, entry in SPEAKS_CHAT.items() if entry.base_url},
    **{
        short: url
        for short, name in SHORT_NAMES.items()
        if name in SPEAKS_CHAT and (url := SPEAKS_CHAT[name].base_url)
    },
    **_STATED_URLS,
}
_NAMES_AT: Mapping[tuple[object, ...], str] = {
    address_key(url): name for name, url in BASE_URLS.items()
}
# By their references, they report usage in streams on request; LiteLLM does not request it.
_TELL_USAGE: Final = frozenset({"cerebras", "deepinfra", "hyperbolic", "nvidia", "nvidia_nim"})
# Addresses of Anthropic Messages APIs, from the providers' references (2026-11).
MESSAGES_URLS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com/anthropic",
    "moonshot": "https://api.moonshot.ai/anthropic",
}
# Betas that clients may request by default: they change neither a price nor who may
# see data. Left out are longer contexts, faster modes, other models, stored files and skills.
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
    """One provider as its client needs it. `prefix` is its name if one client serves several."""

    prefix: str
    base_url: str | None
    credentials: "Credentials"
    reach: "AddressPolicy"
    http: "HttpClient"  # shared by all providers of a worker
    betas: tuple[str, ...] = ()  # that clients may ask for, of a kind that has betas


@dataclass(frozen=True, slots=True)
class KeyVariables:
    """Environment variables of a kind.

    `usual`: the key's variable by provider. `of`: prefixes of the variables that the client itself
    reads, by provider prefix. `finds_keys`: without a configured key, the client uses the
    provider's usual variables.
    """

    usual: Mapping[str, str]
    of: Callable[[str], tuple[str, ...]]
    finds_keys: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """Properties of a wire format. An entry without a field is a type error.

    `load` is called once in each worker before it serves. `addresses`: public base URLs by
    provider; a client that `finds_address` knows its own. `serves`: request kinds, `None` for all.
    `fetches_media`: the provider fetches URLs in a request, this process does not. `marks_cache`
    and `reads_files`: whether messages may have cache marks, and `file` parts, by prefix.
    `speaks_messages`: Messages requests are forwarded unchanged. `lacks`: features that its API has
    no equivalent for. `named_only`: a provider name alone does not select it.
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
    """Return the kind that knows this provider's address, else the adapter kind."""
    known = (
        kind
        for kind, entry in PROVIDER_KINDS.items()
        if name in entry.addresses and not entry.named_only
    )
    return next(known, ADAPTER_KIND)


def wire_of(kind: str, prefix: str) -> ProviderKind:
    """Return the wire format for a provider of this kind and name.

    The adapter is for dialects without an own client: a LiteLLM name with OpenAI's chat API uses
    the wire client, which needs neither LiteLLM's memory nor its time.
    """
    return DIRECT if kind == LITELLM and prefix in SPEAKS_CHAT else PROVIDER_KINDS[kind]


def key_variables(prefix: str) -> tuple[str, ...]:
    """Return the variables in which LiteLLM looks for a key of this name."""
    listed = LISTED.get(SHORT_NAMES.get(prefix, prefix))
    return () if listed is None else listed.keys


def quirks_of(prefix: str) -> Quirks:
    """Return the differences of this provider from OpenAI."""
    listed = SPEAKS_CHAT.get(SHORT_NAMES.get(prefix, prefix))
    if listed is None or prefix == OPENAI:
        return NO_QUIRKS
    if prefix not in _TELL_USAGE:
        return listed.quirks
    left_out = tuple(name for name in listed.leaves_out if name != "stream_options")
    return msgspec.structs.replace(listed.quirks, leaves_out=left_out)


def _openai(site: ProviderSite) -> "Backend":
    from backends.openai import OpenAIBackend  # noqa: PLC0415  (with an HTTP client)

    assert site.base_url is not None  # checked: this kind does not find its address
    quirks = quirks_of(_NAMES_AT.get(address_key(site.base_url), OPENAI))
    return OpenAIBackend(
        site.base_url, site.credentials, client=site.http, reach=site.reach, quirks=quirks
    )


def _direct(site: ProviderSite) -> "Backend":
    """Return the wire client of a LiteLLM name, with the address as LiteLLM reads it."""
    from backends.openai import OpenAIBackend  # noqa: PLC0415  (with an HTTP client)

    assert site.base_url is not None  # checked: this kind does not find its address
    quirks, address = quirks_of(site.prefix), site.base_url
    if address != BASE_URLS.get(site.prefix):
        address = quirks.base(address)
    return OpenAIBackend(
        address, site.credentials, client=site.http, reach=site.reach, quirks=quirks
    )


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


def _reads_none(_prefix: str) -> tuple[str, ...]:
    return ()


_CLOUDS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws_polly": ("AWS_",), "bedrock": ("AWS_", "BEDROCK_"), "bedrock_mantle": ("AWS_", "BEDROCK_"),
    "sagemaker": ("AWS_",), "sagemaker_chat": ("AWS_",), "sagemaker_nova": ("AWS_",),
    "azure": ("AZURE_", "IDENTITY_", "MSI_"), "azure_ai": ("AZURE_", "IDENTITY_", "MSI_"),
    "azure_text": ("AZURE_", "IDENTITY_", "MSI_"), "azure_speech": ("AZURE_",),
    "black_forest_labs": ("BFL_", "BLACK_FOREST_LABS_"),
    "gdc": ("GDC_", "GOOGLE_"),
    "vertex_ai": ("VERTEX", "GOOGLE_", "GCE_METADATA_", "CLOUDSDK_"),
    "vertex_ai_beta": ("VERTEX", "GOOGLE_", "GCE_METADATA_", "CLOUDSDK_"),
    "sap": ("AICORE_",), "watsonx": ("WATSONX_", "WX_", "WML_"),
    "watsonx_text": ("WATSONX_", "WX_", "WML_"),
}  # fmt: skip


def adapter_variables(prefix: str) -> tuple[str, ...]:
    """Return prefixes of the variables that LiteLLM and vendors' SDKs read for a name.

    They include a cloud's workload role, with the file of its token.
    """
    own = f"{prefix.upper().replace('-', '_')}_"
    return ("LITELLM_LO", *_CLOUDS.get(prefix, (own,)))


def _is_never_marked(_prefix: str) -> bool:
    return False


def _is_always(_prefix: str) -> bool:
    return True


def _usual_keys() -> dict[str, str]:
    """Return the key's variable by provider; each variable occurs once."""
    usual = {
        OPENAI: "OPENAI_API_KEY", "mistral": "MISTRAL_API_KEY", "codestral": "CODESTRAL_API_KEY",
    }  # fmt: skip
    for name in (*SHORT_NAMES, *BASE_URLS):
        own = [key for key in key_variables(name) if key not in usual.values()]
        if name not in usual and name not in SHORT_NAMES.values() and own:
            usual[name] = own[0]
    return usual


PROVIDER_KINDS: Final[Mapping[str, ProviderKind]] = {
    OPENAI: ProviderKind(
        title="an OpenAI-compatible client",
        client=_openai,
        load=None,
        variables=KeyVariables(
            usual=_usual_keys(),
            of=_reads_none,
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
            of=_reads_none,
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
            of=adapter_variables,
            finds_keys=True,
        ),
        addresses={},
        finds_address=True,
        serves=frozenset(
            {
                "chat", "completion", "embedding", "moderation", "speech", "image_generation",
                "transcription",
            }
        ),
        takes_batches=False,
        fetches_media=False,
        # For these, LiteLLM's translation keeps `cache_control`.
        marks_cache=frozenset({"anthropic", "bedrock", "vertex_ai"}).__contains__,
        reads_files=frozenset({
            "anthropic", "azure", "bedrock", "gemini", "openai", "openrouter", "vertex_ai",
        }).__contains__,
        speaks_messages=False,
        lacks=frozenset(),
        named_only=False,
    ),
}  # fmt: skip
DIRECT: Final = replace(
    PROVIDER_KINDS[OPENAI],
    title="an OpenAI-compatible client",
    client=_direct,
    takes_batches=False,
    reads_files=PROVIDER_KINDS[LITELLM].reads_files,
    variables=replace(PROVIDER_KINDS[OPENAI].variables, finds_keys=True),
)
