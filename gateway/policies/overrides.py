"""What standing overrides mean for the targets of a model. Pure: no clock, no I/O.

An operator names a target as a decision does (`pool:llama/0`, `openai/gpt-4o`), or all below a
name (`pool:llama`, `openai`). What is said of one model wins over what is said of all.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from ledger.overrides import API, DISABLED, EVERY, OWN, Override
from router.reasons import Reason, Rejection

TARGET, MODEL = "target:", "model:"


class NamedTarget(Protocol):
    """What is asked of a target."""

    @property
    def name(self) -> str: ...

    @property
    def own(self) -> bool: ...


def standing(known: Iterable[Override], now_us: int) -> tuple[Override, ...]:
    """Those that count at this moment."""
    return tuple(one for one in known if one.stands(now_us))


def covers(name: str, target: str) -> bool:
    """Whether an operator's name means this target."""
    return target == name or target.startswith(f"{name}/")


def is_disabled(target: str, overrides: Iterable[Override]) -> bool:
    """Whether an operator keeps all requests from it, whatever they ask for."""
    return any(
        one.says == DISABLED and covers(one.subject.removeprefix(TARGET), target)
        for one in overrides
    )


def barred(
    overrides: Sequence[Override], model: str, targets: Sequence[NamedTarget]
) -> Mapping[str, Rejection]:
    """By candidate: what keeps it away from requests for this model."""
    found: dict[str, Rejection] = {}
    forced = _forced(overrides, model)
    for target in targets:
        if forced is not None and target.own is not (forced.says == OWN):
            found[target.name] = Reason.DISABLED, _words(forced)
        for one in overrides:
            if one.says == DISABLED and covers(one.subject.removeprefix(TARGET), target.name):
                found[target.name] = Reason.DISABLED, _words(one)
    return found


def _forced(overrides: Sequence[Override], model: str) -> Override | None:
    by_subject = {one.subject: one for one in overrides if one.says in (OWN, API)}
    return by_subject.get(MODEL + model) or by_subject.get(MODEL + EVERY)


def _words(one: Override) -> str:
    """Short: it stands in every verdict that it makes."""
    what = "disabled" if one.says == DISABLED else f"only {one.says}"
    return f"{what} by {one.actor}{until(one)}"


def until(one: Override) -> str:
    """` until 2026-01-31 12:30 UTC`; empty without an end."""
    return "" if one.until_us is None else f" until {instant(one.until_us)}"


def instant(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M UTC}"
