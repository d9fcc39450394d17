"""Section `self_service`: limits of keys that members create for themselves."""

from typing import Literal

from pydantic import Field

from gateway.config.sections import ConfigSection


class SelfServiceSection(ConfigSection):
    keys: int = Field(
        20, ge=0, le=10_000,
        description="keys in force that one maker may have, those that its keys made among them; "
        "`0`: none",
    )  # fmt: skip
    keys_per_day: int = Field(
        20, ge=1, le=10_000,
        description="keys that one maker may make or rotate within 24 hours, those of its keys "
        "among them",
    )  # fmt: skip
    days: int | None = Field(
        None, ge=1, le=36_500,
        description="days after which such a key ends at the latest; default: with its maker",
    )  # fmt: skip
    when_maker_ends: Literal["end", "keep"] = Field(
        "end",
        description="what becomes of such keys when the key or person who made them ends: they "
        "`end`, too, or `keep` on",
    )
