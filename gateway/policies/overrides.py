"""Effects of overrides on the targets of a model. Pure: no clock, no I/O.

An operator names a target as in a decision (`pool:llama/0`, `openai/gpt-4o`), or all targets below
a name (`pool:llama`, `openai`). An override for one model has precedence over one for all.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from ledger.overrides import API, DISABLED, EVERY, OWN, Override
from router.reasons import Reason, Rejection

TARGET, MODEL = "target:", "model:"


class NamedTarget(Protocol):
    """Interface of targets that overrides address by name; implemented by `Target`."""

    @property
    def name(self) -> str: ...

    @property
    def own(self) -> bool: ...


def standing_overrides(known: Iterable[Override], now_us: int) -> tuple[Override, ...]:
    """Return the overrides that are active at this time."""
    return tuple(name for name in known if name.is_standing(now_us))


def is_target_named(name: str, target: str) -> bool:
    """Return whether an operator's name includes this target."""
    return target == name or target.startswith(f"{name}/")


def is_disabled(target: str, overrides: Iterable[Override]) -> bool:
    """Return whether an override keeps all requests from the target."""
    return any(
        override.says == DISABLED and is_target_named(override.subject.removeprefix(TARGET), target)
        for override in overrides
    )


def barred(
    overrides: Sequence[Override], model: str, targets: Sequence[NamedTarget]
) -> Mapping[str, Rejection]:
    """Return by candidate why overrides bar it from requests for this model."""
    found: dict[str, Rejection] = {}
    forced = _forced_override(overrides, model)
    for target in targets:
        if forced is not None and target.own is not (forced.says == OWN):
            found[target.name] = Reason.DISABLED, _describe(forced)
        for override in overrides:
            if override.says == DISABLED and is_target_named(
                override.subject.removeprefix(TARGET), target.name
            ):
                found[target.name] = Reason.DISABLED, _describe(override)
    return found


def _forced_override(overrides: Sequence[Override], model: str) -> Override | None:
    by_subject = {
        override.subject: override for override in overrides if override.says in (OWN, API)
    }
    return by_subject.get(MODEL + model) or by_subject.get(MODEL + EVERY)


def _describe(override: Override) -> str:
    """Return a short text, because every affected verdict contains it."""
    what = "disabled" if override.says == DISABLED else f"only {override.says}"
    return f"{what} by {override.actor}{describe_end(override)}"


def describe_end(override: Override) -> str:
    """Return ` until 2026-01-31 12:30 UTC`; empty without an end."""
    return "" if override.until_us is None else f" until {instant(override.until_us)}"


def instant(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M UTC}"
