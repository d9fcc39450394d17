"""Section of one external API: address, key, served models, and billing."""

from typing import Annotated, Any

from pydantic import Field

from backends.disconnects import OnDisconnect
from backends.providers import DEFAULT_KIND, USUAL_BETAS
from gateway.config.choices import ProviderKindName
from gateway.config.sections import (
    ConfigSection,
    KeyCommandSection,
    Lowered,
    UtcOffset,
    Variable,
)
from gateway.config.served_kinds import (
    PROVIDER_DEFAULT,
    ServedKind,
    can_apis_serve,
    list_other_kinds,
)


class ProviderSection(ConfigSection):
    kind: ProviderKindName = DEFAULT_KIND
    base_url: str | None = Field(
        None, description="address of the API; default: the provider's public address"
    )
    api_key_env: Variable | None = Field(None, description="environment variable with the key")
    api_key_file: str | None = Field(None, description="file with the key")
    api_key_exec: KeyCommandSection | None = None
    networks: tuple[str, ...] = Field(
        (),
        description="private networks that the API's name may lead to, as 10.0.0.0/8; others are "
        "refused",
    )
    prices_as: str | None = Field(
        None,
        description="price this provider's models as `provider/model` of the price book, or as the "
        "models of the same names of another `provider`",
    )
    litellm_prefix: str | None = Field(
        None, description="LiteLLM's name of the provider, when it differs from ours"
    )
    billed_with: str | None = Field(
        None,
        description="section of `providers` with the same account at the vendor, as tiers have:"
        " its bill, payable and budget hold the requests of both",
    )
    tier: Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,31}$")] | None = Field(
        None,
        description="service tier that requests ask for there (`flex`, `priority`), unless their "
        "client names one; its prices and latencies are its own",
    )
    simulated: bool = Field(
        False, description="whether the provider is a stand-in, which is labelled wherever it shows"
    )
    start: bool = Field(False, description="whether `serve` starts this simulated provider itself")
    batch: bool = Field(
        False,
        description="whether the provider takes OpenAI's batches: it gets what own engines will "
        "not have done in time",
    )
    features: tuple[Lowered, ...] = Field(
        ("tools", "json_schema", "images", "logprobs", "n", "reasoning"),
        description="features that requests may use; where none are named, also `files` "
        "(documents in a conversation) for providers that are known to read them",
    )
    kinds: tuple[ServedKind, ...] = Field(
        PROVIDER_DEFAULT,
        description="kinds of requests that are served: also "
        f"{list_other_kinds(PROVIDER_DEFAULT, can_apis_serve)}",
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="members of bodies that are sent with each request, unless its client states "
        "them",
    )
    template_arguments: bool = Field(
        False,
        description="whether it takes `chat_template_kwargs`, as vLLM, SGLang and services on them "
        "do; else an answer's `x-breakeven-ignored` names it",
    )
    betas: tuple[str, ...] = Field(
        USUAL_BETAS,
        description="of `kind: anthropic`: what clients may ask for in `anthropic-beta`, `NAME-*` "
        "for any that begins so; an answer's `x-breakeven-ignored` names others",
    )
    tells_users: bool = Field(
        False,
        description="of `kind: anthropic`: whether it is told `metadata.user_id` of a request in "
        "its own form; else the member is left out",
    )
    on_disconnect: OnDisconnect | None = Field(
        None,
        description="what becomes of an answer whose client disconnects: `stops` when we do, or "
        "`continues` and is billed; default: as the provider documents it, else `unknown`, which "
        "is read to its end as `continues` is",
    )
    billing_utc_offset: UtcOffset | None = Field(
        None,
        description="the time zone of the days of its invoices that are imported from now on, as "
        "`-08:00`; default: the one that alone explains an invoice, else UTC",
    )

    def price_name(self, target: str) -> str:
        """Return the price book's name of one of its models, `PROVIDER/MODEL`."""
        if self.prices_as is None or "/" in self.prices_as:
            return self.prices_as or target
        return f"{self.prices_as}/{target.partition('/')[2]}"

    def sends_bills(self, name: str) -> str:
        """Return the provider whose bill contains its requests; `name` is its own."""
        return self.billed_with or name

    @property
    def names_a_key(self) -> bool:
        return any((self.api_key_env, self.api_key_file, self.api_key_exec))
