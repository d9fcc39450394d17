"""The life of one hold: held -> posted | voided | suspense, each transition at most once.

A hold is an upper bound taken before dispatch. It ends by `post` (what it really cost) or `void`
(the provider did no work). A hold that expires goes to suspense at its full amount, never
silently back, because the provider may have billed it; only evidence (`post` or `void`) clears
suspense. Every event that arrives a second time changes nothing, so records can be replayed.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class HoldState(StrEnum):
    HELD = "held"
    POSTED = "posted"
    VOIDED = "voided"
    SUSPENSE = "suspense"


class HoldFlag(StrEnum):
    """What a person should look at; none of them stops the books."""

    OVER_HELD = "over_held"  # posted more than was held: the bound was not a bound
    LATE = "late"  # resolved out of suspense, after the hold had expired
    CONFLICT = "conflict"  # a second, different answer for a hold that had its answer


@dataclass(frozen=True, slots=True)
class HoldLife:
    """One attempt's hold; `counted_pusd` is what it takes from every budget it stands on."""

    attempt_id: str
    held_pusd: int
    expires_us: int
    state: HoldState = HoldState.HELD
    posted_pusd: int = 0
    flags: frozenset[HoldFlag] = frozenset()

    def __post_init__(self) -> None:
        if self.held_pusd < 0 or self.posted_pusd < 0:
            raise ValueError("a hold's amounts are never negative")

    @property
    def counted_pusd(self) -> int:
        if self.state in (HoldState.HELD, HoldState.SUSPENSE):
            return self.held_pusd
        return self.posted_pusd

    @property
    def resolved(self) -> bool:
        return self.state in (HoldState.POSTED, HoldState.VOIDED)


@dataclass(frozen=True, slots=True)
class Step:
    """The hold after an event. `counted_delta_pusd` is what budgets change by (0 for a no-op)."""

    life: HoldLife
    applied: bool
    counted_delta_pusd: int = 0


def post(life: HoldLife, actual_pusd: int) -> Step:
    """Settle at the true cost. A repeat is a no-op; a different repeat is flagged, not booked."""
    if actual_pusd < 0:
        raise ValueError("a cost is never negative")
    if life.resolved:
        same = life.state is HoldState.POSTED and life.posted_pusd == actual_pusd
        return _unchanged(life) if same else _conflict(life)
    flags = set(life.flags)
    if actual_pusd > life.held_pusd:
        flags.add(HoldFlag.OVER_HELD)
    if life.state is HoldState.SUSPENSE:
        flags.add(HoldFlag.LATE)
    return _moved(
        life,
        replace(life, state=HoldState.POSTED, posted_pusd=actual_pusd, flags=frozenset(flags)),
    )


def void(life: HoldLife) -> Step:
    """Nothing was billed: the whole hold goes back."""
    if life.resolved:
        return _unchanged(life) if life.state is HoldState.VOIDED else _conflict(life)
    late = {HoldFlag.LATE} if life.state is HoldState.SUSPENSE else set()
    return _moved(life, replace(life, state=HoldState.VOIDED, flags=life.flags | late))


def suspend(life: HoldLife) -> Step:
    """The outcome is unknown (worker died, stream lost): keep the full amount counted."""
    if life.state is not HoldState.HELD:
        return _unchanged(life)
    return _moved(life, replace(life, state=HoldState.SUSPENSE))


def expire(life: HoldLife, at_us: int) -> Step:
    """`suspend` if the hold is still open at its expiry."""
    return suspend(life) if at_us >= life.expires_us else _unchanged(life)


def _moved(before: HoldLife, after: HoldLife) -> Step:
    return Step(after, applied=True, counted_delta_pusd=after.counted_pusd - before.counted_pusd)


def _unchanged(life: HoldLife) -> Step:
    return Step(life, applied=False)


def _conflict(life: HoldLife) -> Step:
    return Step(replace(life, flags=life.flags | {HoldFlag.CONFLICT}), applied=False)
