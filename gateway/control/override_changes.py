"""Overrides that an operator sets, checked against the configuration. May block.

Names are checked before anything is stored: disabling a misspelt target would have no effect, just
when an operator relies on it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Engine

from gateway.config.aliases import logical_models, resolve_model
from gateway.config.faults import suggest
from gateway.config.pool_seats import seat_count
from gateway.policies.overrides import MODEL, TARGET, barred, is_target_named, standing_overrides
from ledger.overrides import API, DISABLED, EVERY, NOTHING, OWN, Override, overrides, store_override

if TYPE_CHECKING:
    from gateway.config.settings import ModelSection, Settings

_SPAN = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_S = 365 * 86_400  # a longer change belongs into a policy


class OverrideError(Exception):
    """An override that cannot be set; the text says why."""


class OverrideAuthor(NamedTuple):
    """Author, note and time of an override; it ends by itself at `until_us`."""

    by: str
    note: str | None
    at_us: int
    until_us: int | None = None


class TargetName(NamedTuple):
    """A target known from the configuration only."""

    name: str
    own: bool


def span_us(words: str) -> int:
    """Return `90s`, `30m`, `2h` or `7d` in us, at most a year. Raises `OverrideError`."""
    found = _SPAN.fullmatch(words.strip())
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not seconds:
        raise OverrideError(f"invalid duration `{words}`: write 90s, 30m, 2h or 7d")
    if seconds > _LONGEST_S:
        raise OverrideError(f"the duration `{words}` is too long: the maximum is 365d")
    return seconds * 1_000_000


def target_names(settings: "Settings") -> list[str]:
    """Return all names that can be disabled: pools, engines, providers and their models."""
    places = [
        place.name for _, model in logical_models(settings) for place in _places(settings, model)
    ]
    engines = [place.name for name in settings.pools for place in _engines(settings, name)]
    pools = [f"pool:{name}" for name in settings.pools]
    return sorted({*places, *engines, *pools, *settings.providers})


def disable(engine: Engine, settings: "Settings", name: str, author: OverrideAuthor) -> Override:
    """Store that no new request goes to this target or to any below its name."""
    provider, _, rest = name.partition("/")
    known = target_names(settings)
    passed = rest and settings.models.get(f"{provider}/*") == "passthrough"
    if name not in known and not passed:
        raise OverrideError(
            f"there is no target `{name}`; the targets are {', '.join(known) or 'none'}"
        )
    return _store(engine, TARGET + name, DISABLED, author)


def enable(engine: Engine, name: str, author: OverrideAuthor) -> list[Override]:
    """Revoke what disables the target, or any below its name.

    An override of a name above it (`pool:llama` for `pool:llama/0`) is revoked only by that name.
    """
    found = [
        override
        for override in overrides_in_force(engine, author.at_us)
        if override.says == DISABLED
        and is_target_named(name, override.subject.removeprefix(TARGET))
    ]
    if not found:
        raise OverrideError(
            f"target `{name}` is not disabled; `breakeven target list` lists disabled targets"
        )
    return [_store(engine, override.subject, NOTHING, author) for override in found]


def force(
    engine: Engine, settings: "Settings", says: str, model: str | None, author: OverrideAuthor
) -> Override:
    """Store that a model (`None`: all) uses own engines only, or APIs only."""
    if says not in (OWN, API):
        raise OverrideError(f"invalid route `{says}`: write `{OWN}` or `{API}`")
    if model is None:
        return _store(engine, MODEL + EVERY, says, author)
    name, known = _known_model(settings, model)
    if all(place.own is not (says == OWN) for place in _places(settings, known)):
        raise OverrideError(
            f"`{model}` has no {says} target: every request would be refused. Add one to "
            "`models`, or force the other route"
        )
    return _store(engine, MODEL + name, says, author)


def release(
    engine: Engine, settings: "Settings", model: str | None, author: OverrideAuthor
) -> Override:
    subject = MODEL + (EVERY if model is None else _known_model(settings, model)[0])
    if all(override.subject != subject for override in overrides_in_force(engine, author.at_us)):
        whom = "all models" if model is None else f"`{model}`"
        raise OverrideError(
            f"the route of {whom} is not forced; `breakeven route list` lists forced routes"
        )
    return _store(engine, subject, NOTHING, author)


def overrides_in_force(engine: Engine, now_us: int) -> Sequence[Override]:
    return standing_overrides(overrides(engine), now_us)


def unserved_models(settings: "Settings", stands: Sequence[Override]) -> list[str]:
    """Return models that these overrides leave without a target; their requests are refused."""
    return [
        name
        for name, model in logical_models(settings)
        if len(barred(stands, name, places := _places(settings, model))) == len(places)
    ]


def _store(engine: Engine, subject: str, says: str, author: OverrideAuthor) -> Override:
    until_us = None if says == NOTHING else author.until_us
    given = Override(0, subject, says, until_us, author.at_us, author.by, author.note)
    return store_override(engine, given)


def _known_model(settings: "Settings", name: str) -> tuple[str, "ModelSection"]:
    found = resolve_model(settings, name)
    if found is None:
        raise OverrideError(f"there is no model named `{name}`{suggest(name, settings.models)}")
    return found


def _places(settings: "Settings", model: "ModelSection") -> list[TargetName]:
    found: list[TargetName] = []
    for name in model.reachable:
        if name.startswith("pool:"):
            found += _engines(settings, name.removeprefix("pool:"))
        else:
            found.append(TargetName(name, own=False))
    return found


def _engines(settings: "Settings", pool: str) -> Iterator[TargetName]:
    for number in range(seat_count(settings.pools[pool])):
        yield TargetName(f"pool:{pool}/{number}", own=True)
