"""Next steps from the plan's wish, the listed engines and the ledger's rows. No I/O.

Marks in the ledger come first, then repeated orders, then new ones. A new engine or a drain is an
intent: the loop stores it before it acts. A missing list entry is believed only after `grace_us`,
and never while the engine at that place serves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.scaling.actuator import ListedInstance, make_token
from gateway.scaling.listed_matches import ListedMatches, stranger_keys
from ledger.fleet.fleet_records import FleetInstance


class FindingKind(StrEnum):
    """Kind of a fleet's fault, also the label of the metric."""

    UNREACHABLE = "unreachable"
    ORPHAN = "orphan"
    DUPLICATE = "duplicate"
    RETURNED = "returned"
    FORGOTTEN = "forgotten"
    NEVER_READY = "never_ready"
    STUCK = "stuck"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"
    LIMITED = "limited"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """Fault of a fleet; `about` is a token or actuator's name, empty for the whole pool."""

    kind: FindingKind
    about: str
    words: str


class ActionVerb(StrEnum):
    """Steps of the loop: marks in the ledger, orders, and intents (`START`, `DRAIN`, `ADOPT`)."""

    SEEN = "seen"
    READY = "ready"
    GONE = "gone"
    NAME_ORPHAN = "name_orphan"
    REOPEN = "reopen"
    REVIVE = "revive"
    REPEAT_START = "repeat_start"
    KEEP_AWAY = "keep_away"
    STOP = "stop"
    ADOPT = "adopt"
    DRAIN = "drain"
    START = "start"


@dataclass(frozen=True, slots=True)
class FleetAction:
    """One step. `outcome` is the result of the instance's open change, if this step ends it.

    `at_us` is when it happened, if that was earlier than now.
    """

    verb: ActionVerb
    token: str
    place: int | None = None
    name: str | None = None
    outcome: str | None = None
    words: str | None = None
    at_us: int | None = None


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Limits of a pool; `can_start` is what the spend limit allows, `None`: no limit."""

    least: int
    most: int
    give_up_us: int
    grace_us: int
    drain_us: int
    follow_us: int = 0
    can_start: int | None = None
    ordered: bool = False
    adopts: bool = False


@dataclass(frozen=True, slots=True)
class FleetWish:
    """Wish of the plan; `hold` says why nothing new may begin, if so."""

    wanted: int
    stop: tuple[str, ...] = ()
    hold: str | None = None


@dataclass(frozen=True, slots=True)
class FleetView:
    """Known state of a pool. `listed` is `None` if the actuator did not answer.

    `instances` are open rows; `closed` are other rows of listed tokens: ended ones, and those of
    other pools. `serving` and `busy` are places by the gateway's own probe. `away` says since when
    requests are kept from a place, `missing_us` since when a token was not listed.
    """

    pool: str
    now_us: int
    instances: tuple[FleetInstance, ...]
    listed: tuple[ListedInstance, ...] | None
    serving: frozenset[int] = frozenset()
    busy: frozenset[int] = frozenset()
    away: Mapping[int, int] = field(default_factory=dict)
    closed: tuple[FleetInstance, ...] = ()
    missing_us: Mapping[str, int] = field(default_factory=dict)
    is_first: bool = False
    unreachable: str = ""


@dataclass(frozen=True, slots=True)
class FleetSteps:
    """Actions in their order, and findings to report."""

    actions: tuple[FleetAction, ...]
    findings: tuple[FleetFinding, ...]


def reconcile(
    view: FleetView, wish: FleetWish, rules: FleetRules, nonces: Sequence[str]
) -> FleetSteps:
    """Return the next steps; `nonces` make the tokens of new instances, one each."""
    if view.listed is None:
        words = f"the actuator did not list its engines: {view.unreachable}"
        return FleetSteps((), (FleetFinding(FindingKind.UNREACHABLE, "", words),))
    found = ListedMatches(view.pool, view.instances, view.listed, view.closed)
    marks: list[FleetAction | FleetFinding] = [*_strangers(view, found, rules, nonces)]
    for instance in view.instances:
        if instance.owned:
            marks += _follow(view, found, rules, instance)
        elif not found.has(instance) and _is_missed(view, rules, instance):
            marks.append(_gone(view, instance))
    fresh = [*_resize(view, wish, rules, nonces, marks)]
    every = (*marks, *fresh)
    return FleetSteps(
        tuple(step for step in every if isinstance(step, FleetAction)),
        tuple(step for step in every if isinstance(step, FleetFinding)),
    )


def _strangers(
    view: FleetView, found: ListedMatches, rules: FleetRules, nonces: Sequence[str]
) -> Iterator[FleetAction | FleetFinding]:
    """Yield findings on unknown engines; the first time, running ones are adopted."""
    known = {key for item in view.instances if not item.owned for key in stranger_keys(item.token)}
    for listed, pool in found.foreign:
        words = f"{listed.name} is of pool {pool} and listed for {view.pool}: rent counts there"
        yield FleetFinding(FindingKind.DUPLICATE, listed.name, words)
    for instance in found.returned:
        words = f"{instance.token} was gone and is listed again; it is stopped"
        yield FleetFinding(FindingKind.RETURNED, instance.token, words)
        yield FleetAction(ActionVerb.REOPEN, instance.token, instance.place)
    unused = iter(reversed(nonces))
    for key, listed in sorted(found.strange.items()):
        if rules.adopts and view.is_first and listed.token is None and listed.place is not None:
            token = make_token(view.pool, listed.place, next(unused))
            yield FleetAction(ActionVerb.ADOPT, token, listed.place, listed.name)
            continue
        kind = FindingKind.DUPLICATE if "#" in key else FindingKind.ORPHAN
        words = (
            f"{listed.name} runs beside the engine that its token was for"
            if kind is FindingKind.DUPLICATE
            else f"{listed.name} runs, and no plan asked for it"
        )
        yield FleetFinding(kind, key, f"{words}; it costs rent until somebody ends it")
        if key not in known:
            yield FleetAction(ActionVerb.NAME_ORPHAN, key, listed.place, listed.name)


def _follow(
    view: FleetView, found: ListedMatches, rules: FleetRules, instance: FleetInstance
) -> Iterator[FleetAction | FleetFinding]:
    """Update one row, and repeat orders without a visible effect."""
    token, place = instance.token, instance.place
    listed = found.of.get(token, [])
    if listed and instance.seen_us is None:
        yield FleetAction(ActionVerb.SEEN, token, place, listed[0].name)
    if place in view.serving and listed and instance.ready_us is None:
        yield FleetAction(ActionVerb.READY, token, place, outcome=_ends(instance, "done"))
    if listed:
        yield from _listed(view, rules, instance, _ends_us(listed))
    else:
        yield from _unlisted(view, found, rules, instance)


def _ends_us(listed: Sequence[ListedInstance]) -> int | None:
    """Return when an engine's owner takes it away, if announced."""
    return min((item.ends_us for item in listed if item.ends_us is not None), default=None)


def _listed(
    view: FleetView, rules: FleetRules, instance: FleetInstance, ends_us: int | None
) -> Iterator[FleetAction | FleetFinding]:
    token, place, now_us = instance.token, instance.place, view.now_us
    if ends_us is not None:
        words = f"{token} is taken away by its owner in {max(0, ends_us - now_us) / 1e6:.0f} s"
        yield FleetFinding(FindingKind.INTERRUPTED, token, words)
        if instance.stop_us is None:
            yield FleetAction(ActionVerb.DRAIN, token, place, words=words)
            return
    if instance.stop_us is None:
        late = instance.ready_us is None and place not in view.serving
        if late and now_us - instance.asked_us > rules.give_up_us:
            words = f"{token} does not serve after {rules.give_up_us / 6e7:.0f} min; it is stopped"
            yield FleetFinding(FindingKind.NEVER_READY, token, words)
            yield FleetAction(ActionVerb.DRAIN, token, place, words=words)
        return
    if instance.told_us is None:
        yield from _drain(view, rules, instance)
        return
    if now_us - instance.told_us > rules.grace_us:
        minutes = (now_us - instance.told_us) / 6e7
        words = f"{token} is still listed {minutes:.0f} min after it was stopped; it costs rent"
        yield FleetFinding(FindingKind.STUCK, token, words)
    yield FleetAction(ActionVerb.STOP, token, place)


def _drain(view: FleetView, rules: FleetRules, instance: FleetInstance) -> Iterator[FleetAction]:
    """Keep requests away, let open ones end, then stop, with time for all hosts to follow."""
    place, stop_us = instance.place, instance.stop_us
    away_us = None if place is None else view.away.get(place)
    if place is not None and away_us is None:
        yield FleetAction(ActionVerb.KEEP_AWAY, instance.token, place)
        return
    heard = away_us is None or view.now_us - away_us >= rules.follow_us
    patient = stop_us is not None and view.now_us - stop_us <= rules.drain_us
    if heard and not (place in view.busy and patient):
        yield FleetAction(ActionVerb.STOP, instance.token, place)


def _unlisted(
    view: FleetView, found: ListedMatches, rules: FleetRules, instance: FleetInstance
) -> Iterator[FleetAction | FleetFinding]:
    token, place, now_us = instance.token, instance.place, view.now_us
    if instance.seen_us is None and instance.told_us is None:
        if instance.stop_us is not None:
            yield FleetAction(ActionVerb.STOP, token, place)
        elif now_us - instance.asked_us > rules.give_up_us:
            words = f"{token} never came; it is stopped in case that it comes yet"
            yield FleetFinding(FindingKind.NEVER_READY, token, words)
            yield FleetAction(ActionVerb.DRAIN, token, place, words=words)
        else:
            yield FleetAction(ActionVerb.REPEAT_START, token, place)
        return
    # The serving engine may be the next, listed instance at this place.
    others = {item.place for item in view.instances if item.token in found.of}
    if place in view.serving and place not in others:
        words = f"{token} is not listed, and its engine serves; it costs rent"
        yield FleetFinding(FindingKind.FORGOTTEN, token, words)
        return
    if not _is_missed(view, rules, instance):
        if instance.told_us is None:
            words = f"{token} is no longer listed"
            yield FleetFinding(FindingKind.FORGOTTEN, token, words)
        return
    if instance.stop_us is not None:
        came = instance.ready_us is not None
        yield _gone(view, instance, outcome="done" if came else "failed")
        return
    words = f"{token} ended without being asked to"
    yield FleetFinding(FindingKind.FORGOTTEN, token, words)
    yield _gone(view, instance, outcome="failed", words=words)


def _gone(
    view: FleetView,
    instance: FleetInstance,
    outcome: str | None = None,
    words: str | None = None,
) -> FleetAction:
    """Return the mark of an end; rent ends when the engine was first missing."""
    since_us = view.missing_us.get(instance.token)
    ended_us = None if since_us is None else max(since_us, instance.asked_us)
    return FleetAction(
        ActionVerb.GONE, instance.token, instance.place, None, outcome, words, ended_us
    )


def _is_missed(view: FleetView, rules: FleetRules, instance: FleetInstance) -> bool:
    """Return whether an engine was missing in lists for longer than the grace period."""
    return view.now_us - view.missing_us.get(instance.token, view.now_us) >= rules.grace_us


def _ends(instance: FleetInstance, outcome: str) -> str | None:
    """Return the outcome for an open start, which is done when it serves; `None` for a stop."""
    return outcome if instance.stop_us is None else None


def _resize(
    view: FleetView,
    wish: FleetWish,
    rules: FleetRules,
    nonces: Sequence[str],
    marks: Sequence[FleetAction | FleetFinding],
) -> Iterator[FleetAction | FleetFinding]:
    """Start or drain what the plan wants beyond running changes."""
    ending = {
        step.token
        for step in marks
        if isinstance(step, FleetAction) and step.verb in (ActionVerb.DRAIN, ActionVerb.GONE)
    }
    adopted = sum(isinstance(step, FleetAction) and step.verb is ActionVerb.ADOPT for step in marks)
    live = [item for item in view.instances if item.is_live and item.token not in ending]
    wanted = max(rules.least, min(rules.most, wish.wanted))
    count = len(live) + adopted
    if wish.hold is not None:
        if wanted != count:
            words = f"{count} engines run or start, {wanted} are wanted: {wish.hold}"
            yield FleetFinding(FindingKind.HELD, "", words)
        return
    if count > wanted:
        for instance in _leaving(live, wish.stop, rules)[: count - wanted]:
            yield FleetAction(ActionVerb.DRAIN, instance.token, instance.place)
        return
    yield from _begin(view, rules, nonces, wanted - count)


def _begin(
    view: FleetView, rules: FleetRules, nonces: Sequence[str], more: int
) -> Iterator[FleetAction | FleetFinding]:
    """Keep draining engines, then start missing ones, as far as money and places allow.

    Engines that their owner takes away are not kept.
    """
    leaving = {item.token for item in view.listed or () if item.ends_us is not None}
    draining = [
        item
        for item in view.instances
        if item.owned
        and item.stop_us is not None
        and item.told_us is None
        and item.ready_us
        and item.token not in leaving
    ]
    for instance in draining[:more]:
        yield FleetAction(ActionVerb.REVIVE, instance.token, instance.place, outcome="failed")
    more -= min(more, len(draining))
    if more and rules.can_start is not None and rules.can_start < more:
        words = f"{more - rules.can_start} engines are not started: the day's rent is at its limit"
        yield FleetFinding(FindingKind.LIMITED, "", words)
        more = rules.can_start
    taken = {item.place for item in view.instances}
    taken |= {item.place for item in view.listed or ()}
    free = [place for place in range(rules.most) if place not in taken]
    if rules.ordered and taken:
        top = max((place for place in taken if place is not None), default=-1)
        free = [place for place in free if place > top]
    if more > len(free):
        words = f"{more - len(free)} engines are not started: their places are taken"
        yield FleetFinding(FindingKind.REFUSED, "", words)
    for place, nonce in zip(free[:more], nonces, strict=False):
        yield FleetAction(ActionVerb.START, make_token(view.pool, place, nonce), place)


def _leaving(
    live: Sequence[FleetInstance], named: Sequence[str], rules: FleetRules
) -> list[FleetInstance]:
    """Return live instances in the order in which they would stop."""
    if rules.ordered:
        return sorted(live, key=lambda item: -(item.place or 0))
    order = {token: number for number, token in enumerate(named)}
    return sorted(
        live,
        key=lambda item: (
            order.get(item.token, len(order)),
            item.ready_us is not None,
            -(item.place or 0),
        ),
    )
