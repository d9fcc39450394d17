"""Runner of the steps of `reconcile`: writes the ledger before and after each order.

After a crash at any line, the next run finds in the ledger every instance that may exist, and
repeats the orders with the same tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gateway.scaling.actuator import ActuatorError, FleetActuator
from gateway.scaling.fleet_probe import FleetProbe
from gateway.scaling.reconcile import ActionVerb, FindingKind, FleetAction, FleetFinding
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetChange, FleetInstance
from ledger.fleet.scaling_books import ScalingBooks


@dataclass(frozen=True, slots=True)
class PlannedWords:
    """Texts stored with a change; `live` is the number of engines before it."""

    at_us: int
    reason: str
    sentence: str
    expected_pusd: int | None
    until_us: int
    live: int


class ActionRunner:
    """Runner of the steps of one pool under one lease."""

    def __init__(
        self,
        pool: str,
        books: ScalingBooks,
        actuator: FleetActuator,
        probe: FleetProbe,
        rent: InstanceRent,
    ) -> None:
        self._pool, self._books, self._rent = pool, books, rent
        self._actuator, self._probe = actuator, probe
        self._live = 0
        self.starts = self.stops = 0

    def run(
        self,
        actions: Iterable[FleetAction],
        words: PlannedWords,
        rows: Iterable[FleetInstance],
    ) -> list[FleetFinding]:
        """Run the steps in order; return the findings on what an actuator refused."""
        known, findings = {row.token: row for row in rows}, []
        self._live = words.live
        for action in actions:
            try:
                self._do(action, words, known.get(action.token))
            except ActuatorError as error:
                said = f"{action.verb.value.replace('_', ' ')} of {action.token}: {error}"
                findings.append(FleetFinding(FindingKind.REFUSED, action.token, said))
        return findings

    def _do(self, action: FleetAction, words: PlannedWords, row: FleetInstance | None) -> None:
        verb = action.verb
        if verb in (ActionVerb.START, ActionVerb.ADOPT):
            self._begin(action, words)
        elif verb is ActionVerb.REPEAT_START:
            self._actuator.start(action.token, _place(action))
        elif verb is ActionVerb.DRAIN:
            self._drain(action, words)
        elif verb is ActionVerb.KEEP_AWAY:
            self._probe.keep_away(_place(action), f"drains: {action.token}")
        elif verb is ActionVerb.STOP:
            self._stop(action, words.at_us, row)
        elif verb is ActionVerb.NAME_ORPHAN:
            self._books.add(self._orphan(action, words.at_us))
        else:
            self._mark(action, words.at_us)

    def _begin(self, action: FleetAction, words: PlannedWords) -> None:
        adopts = action.verb is ActionVerb.ADOPT
        self._live += 1
        instance = FleetInstance(
            action.token, self._pool, action.place, True, self._rent, words.at_us,
            name=action.name if adopts else None, seen_us=words.at_us if adopts else None,
        )  # fmt: skip
        self._books.intend(self._change(action, words, self._live), instance)
        if not adopts:
            self.starts += 1
        self._actuator.start(action.token, _place(action))

    def _drain(self, action: FleetAction, words: PlannedWords) -> None:
        said = words if action.words is None else replace(words, sentence=action.words)
        self._books.intend(self._change(action, said, self._live))
        self._live -= 1
        self.stops += 1
        if action.place is not None:
            self._probe.keep_away(action.place, f"drains: {action.token}")

    def _stop(self, action: FleetAction, at_us: int, row: FleetInstance | None) -> None:
        if row is None or row.told_us is None:
            self._books.mark(action.token, told_us=at_us)
        self._actuator.stop(action.token, _place(action))

    def _mark(self, action: FleetAction, at_us: int) -> None:
        """Store a mark. Requests are admitted first, so that a crash cannot shut them out."""
        verb = action.verb
        lets_in = verb is ActionVerb.REVIVE or (verb is ActionVerb.READY and action.outcome)
        if lets_in and action.place is not None:
            self._probe.let_in(action.place)
        if verb is ActionVerb.REVIVE:
            self._live += 1
        marks: dict[ActionVerb, dict[str, int | str | None]] = {
            ActionVerb.SEEN: {"seen_us": at_us, "name": action.name},
            ActionVerb.READY: {"ready_us": at_us},
            ActionVerb.GONE: {"gone_us": at_us if action.at_us is None else action.at_us},
            ActionVerb.REOPEN: {"gone_us": None, "stop_us": at_us, "told_us": at_us},
            ActionVerb.REVIVE: {"stop_us": None},
        }
        self._books.mark(action.token, action.outcome, action.words, **marks[verb])

    def _change(self, action: FleetAction, words: PlannedWords, engines: int) -> FleetChange:
        verb = "stop" if action.verb is ActionVerb.DRAIN else action.verb.value
        return FleetChange(
            pool=self._pool, at_us=words.at_us, mode="act", verb=verb, token=action.token,
            engines=engines, reason=words.reason, sentence=words.sentence,
            expected_pusd=words.expected_pusd, until_us=words.until_us,
        )  # fmt: skip

    def _orphan(self, action: FleetAction, at_us: int) -> FleetInstance:
        """Return a row for an engine without a plan, so that its rent is booked."""
        return FleetInstance(
            action.token, self._pool, action.place, False, self._rent, at_us,
            name=action.name, seen_us=at_us,
        )  # fmt: skip


def _place(action: FleetAction) -> int:
    if action.place is None:
        raise ActuatorError("its place is not known")
    return action.place
