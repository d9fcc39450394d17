"""Scaler of one pool: observes, plans, compares with current engines, acts; step by step.

Only the holder of the pool's lease runs `step`. A failed step changes nothing that the next one
does not find.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.scaling import advised_fleet
from gateway.scaling.action_runner import ActionRunner, PlannedWords
from gateway.scaling.actuator import ActuatorError, FleetActuator
from gateway.scaling.fleet_probe import FleetProbe
from gateway.scaling.listed_matches import ListedMatches
from gateway.scaling.plan_words import advised_changes, document_of, expected_pusd, usd
from gateway.scaling.played_fleet import demand_classes
from gateway.scaling.pool_setup import PoolSetup
from gateway.scaling.reconcile import (
    FindingKind,
    FleetFinding,
    FleetView,
    FleetWish,
    reconcile,
)
from gateway.scaling.spend_limit import starts_left
from gateway.scaling.traffic_observer import WINDOW_US, ObservedTraffic, TrafficObserver
from ledger.fleet.fleet_lease import FleetLeaseLost, lease_holder, take_lease
from ledger.fleet.fleet_reads import (
    has_instances,
    instances_between,
    instances_named,
    last_plan,
    open_instances,
    planner_memory,
)
from ledger.fleet.fleet_records import FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks
from ledger.fleet.scaling_notes import ScalingNote
from ledger.reporting_zone import ReportingZone
from router.scaling.plan import EngineLease, FleetState, ScalePlan, SizesFleet

LEASE_US = 60_000_000
KEPT_US = 600_000_000  # after which an unchanged plan is stored again
NONCE_BYTES = 6


@dataclass(frozen=True, slots=True)
class ScalerPlace:
    """Parts that a pool's scaler works with; `actuator` is `None` if it only advises."""

    ledger: Engine
    probe: FleetProbe
    actuator: FleetActuator | None
    clock: Clock
    holder: str
    planner: Callable[[dict[str, Any] | None], SizesFleet]
    known_us: Callable[[], int]  # attempts opened before are in the ledger


class PoolScaler:
    """Scaler of one pool."""

    def __init__(self, setup: PoolSetup, place: ScalerPlace) -> None:
        self._setup, self._place = setup, place
        self._observer = TrafficObserver(setup, place.ledger)
        self._planner: SizesFleet | None = None
        self._memory: PlannerMemory | None = None
        self._fence = 0
        self._missing: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._scored_from_us = 0

    def step(self) -> ScalingNote:
        """Do what is due; return the pool's state afterwards."""
        now_us, place = self._place.clock.wall_us(), self._place
        fence = take_lease(
            place.ledger, self._setup.pool, place.holder, now_us=now_us, length_us=LEASE_US
        )
        if fence is None:
            self._planner = None
            return self._look_on(now_us)
        if self._planner is None or fence != self._fence:
            self._begin(now_us)
            self._fence = fence
        books = ScalingBooks(place.ledger, self._setup.pool, fence, now_us=now_us)
        try:
            return self._lead(books, now_us)
        except FleetLeaseLost as error:
            self._planner = None
            return msgspec.structs.replace(self._look_on(now_us), held=str(error))

    # -- one step of the holder -----------------------------------------------------------------

    def _begin(self, now_us: int) -> None:
        """Continue from the state of the last holder."""
        with self._place.ledger.connect() as connection:
            self._memory = planner_memory(connection, self._setup.pool)
        memory = None if self._memory is None else self._memory.memory or None
        self._planner = self._place.planner(memory)
        # The minute of the first advice counts, because rent is due from the order on.
        began_us = now_us - now_us % WINDOW_US
        self._scored_from_us = began_us if self._memory is None else self._memory.through_us

    def _lead(self, books: ScalingBooks, now_us: int) -> ScalingNote:
        serving = self._place.probe.serving()
        self._observer.refresh(now_us)
        advised = self._advised(len(serving), now_us)
        seen = self._observe(now_us, len(serving), advised)
        advised = [*seen.advised]
        with self._place.ledger.connect() as connection:
            rows = open_instances(connection, self._setup.pool)
        acts = self._setup.acts and self._place.actuator is not None
        leases = self._leases(rows) if acts else advised_fleet.leases(advised)
        plan = self._plan(now_us, leases)
        if plan is not None:
            self._keep_plan(books, plan)
            if not acts:
                advised = self._follow_advice(books, plan, advised, now_us)
        self._remember(books, seen, advised)
        findings: list[FleetFinding] = []
        if self._place.actuator is not None and (acts or rows):
            findings = self._act(books, plan, rows, now_us, acts=acts)
        return self._note(now_us, plan, findings)

    def _advised(self, serving: int, now_us: int) -> list[advised_fleet.AdvisedEngine]:
        if self._memory is None:
            return advised_fleet.begin(serving, now_us)
        return advised_fleet.restored(self._memory.advised)

    def _observe(
        self, now_us: int, serving: int, advised: Sequence[advised_fleet.AdvisedEngine]
    ) -> ObservedTraffic:
        assert self._planner is not None, "the holder has a planner"
        through_us = (
            self._observer.first_us(now_us) if self._memory is None else self._memory.through_us
        )
        return self._observer.observe(
            self._planner,
            through_us,
            min(now_us, self._place.known_us()),
            None if self._setup.acts else serving,
            advised,
            scored_from_us=self._scored_from_us,
        )

    def _plan(self, now_us: int, leases: tuple[EngineLease, ...]) -> ScalePlan | None:
        """Return the plan; `None` while an engine's capacity is unknown."""
        classes = self._observer.classes
        if classes is None or self._planner is None:
            return None
        plan = self._planner.plan(FleetState(now_us, leases, demand_classes(classes)))
        bands = plan.forecast
        if bands:
            due_us = now_us + round(bands[0].horizon_s * 1e6)
            low, high = (sum(getattr(band, end) for band in bands) for end in ("low", "high"))
            self._observer.expect(due_us, low, high)
        return plan

    def _leases(self, rows: Sequence[FleetInstance]) -> tuple[EngineLease, ...]:
        start_us = round(self._setup.section.start_s * 1e6)
        return tuple(
            EngineLease(row.token, row.asked_us, row.ready_us or row.asked_us + start_us)
            for row in rows
            if row.is_live
        )

    def _keep_plan(self, books: ScalingBooks, plan: ScalePlan) -> None:
        with self._place.ledger.connect() as connection:
            before = last_plan(connection, self._setup.pool)
        same = before is not None and (before.wanted, before.running, before.reason) == (
            plan.wanted, plan.running, plan.reason.value,
        )  # fmt: skip
        if same and before is not None and plan.at_us - before.at_us < KEPT_US:
            return
        books.record_plan(
            FleetPlanRecord(
                pool=self._setup.pool,
                at_us=plan.at_us,
                mode=self._setup.section.mode,
                wanted=plan.wanted,
                running=plan.running,
                reason=plan.reason.value,
                sentence=plan.sentence,
                document=document_of(plan),
            )
        )

    def _follow_advice(
        self,
        books: ScalingBooks,
        plan: ScalePlan,
        advised: list[advised_fleet.AdvisedEngine],
        now_us: int,
    ) -> list[advised_fleet.AdvisedEngine]:
        """Store the advice, and continue as if it had been followed."""
        if changes := advised_changes(plan, self._setup.pool):
            self._counts.update(change.verb for change in changes)
            books.advise(changes)
        return advised_fleet.follow(
            advised,
            plan.wanted,
            plan.stop,
            now_us=now_us,
            start_us=round(self._setup.section.start_s * 1e6),
        )

    def _remember(
        self,
        books: ScalingBooks,
        seen: ObservedTraffic,
        advised: Sequence[advised_fleet.AdvisedEngine],
    ) -> None:
        assert self._planner is not None, "the holder has a planner"
        documents = advised_fleet.stored(advised)
        before = self._memory
        moved = before is None or seen.through_us != before.through_us
        if not moved and before is not None and before.advised == documents:
            return
        memory = self._planner.memory() if moved or before is None else before.memory
        self._memory = PlannerMemory(seen.through_us, dict(memory), documents)
        books.score(self._memory, seen.spans, dict(seen.realised))

    # -- acting ---------------------------------------------------------------------------------

    def _act(
        self,
        books: ScalingBooks,
        plan: ScalePlan | None,
        rows: Sequence[FleetInstance],
        now_us: int,
        *,
        acts: bool,
    ) -> list[FleetFinding]:
        actuator, probe = self._place.actuator, self._place.probe
        assert actuator is not None, "the caller looked"
        view, live = self._view(actuator, rows, now_us), sum(row.is_live for row in rows)
        hold = self._hold(now_us) if acts else "`mode` is advise"
        wish = FleetWish(live if plan is None else plan.wanted, plan.stop if plan else (), hold)
        rules = self._setup.rules(
            ordered=actuator.ordered, adopts=actuator.adopts, can_start=self._can_start(now_us)
        )
        if view.is_first and plan is None and view.listed is not None:
            wish = replace(wish, wanted=len(view.listed))
        nonces = [secrets.token_hex(NONCE_BYTES) for _ in range(4 * rules.most + 4)]
        steps = reconcile(view, wish, rules, nonces)
        runner = ActionRunner(self._setup.pool, books, actuator, probe, self._setup.rent)
        refused = runner.run(steps.actions, self._words(plan, now_us, live), rows)
        self._counts.update({"start": runner.starts, "stop": runner.stops})
        return [*steps.findings, *refused]

    def _view(
        self, actuator: FleetActuator, rows: Sequence[FleetInstance], now_us: int
    ) -> FleetView:
        why, listed = "", None
        try:
            listed = tuple(actuator.list())
        except ActuatorError as error:
            why = str(error)
        tokens = [item.token for item in listed or () if item.token is not None]
        known = {row.token for row in rows}
        with self._place.ledger.connect() as connection:
            closed = instances_named(connection, sorted(set(tokens) - known))
            first = not has_instances(connection, self._setup.pool)
        if listed is not None:
            found = ListedMatches(self._setup.pool, rows, listed, closed)
            self._missing = self._missed(found, rows, now_us)
        probe = self._place.probe
        return FleetView(
            pool=self._setup.pool,
            now_us=now_us,
            instances=tuple(rows),
            listed=listed,
            serving=probe.serving(),
            busy=probe.busy(),
            away=probe.away(),
            closed=tuple(closed),
            missing_us=self._missing,
            is_first=first,
            unreachable=why,
        )

    def _missed(
        self, found: ListedMatches, rows: Sequence[FleetInstance], now_us: int
    ) -> dict[str, int]:
        """Return since when lists lack each row; engines that serve although unlisted cost rent."""
        listed = {row.place for row in rows if found.has(row)}
        serving = self._place.probe.serving() - listed
        return {
            row.token: now_us if row.place in serving else self._missing.get(row.token, now_us)
            for row in rows
            if not found.has(row)
        }

    def _hold(self, now_us: int) -> str | None:
        if (why := self._place.probe.paused()) is not None:
            return why
        return "it is a quiet time" if self._setup.is_quiet(now_us) else None

    def _can_start(self, now_us: int) -> int | None:
        setup = self._setup
        if setup.limit_pusd is None:
            return None
        day = ReportingZone(setup.timezone).day(now_us)
        with self._place.ledger.connect() as connection:
            rows = instances_between(connection, setup.pool, *day)
        return starts_left(rows, setup.rent, setup.limit_pusd, day=day, now_us=now_us)

    def _words(self, plan: ScalePlan | None, now_us: int, live: int) -> PlannedWords:
        if plan is None:
            words = "what an engine can do is not known yet, so the bounds alone count"
            return PlannedWords(now_us, "unobserved", words, None, now_us, live)
        until_us = now_us + round(plan.horizon_s * 1e6)
        expected = expected_pusd(plan)
        return PlannedWords(now_us, plan.reason.value, plan.sentence, expected, until_us, live)

    # -- what is told ---------------------------------------------------------------------------

    def _look_on(self, now_us: int) -> ScalingNote:
        """Return the state that a process without the lease knows."""
        with self._place.ledger.connect() as connection:
            rows = open_instances(connection, self._setup.pool)
            plan = last_plan(connection, self._setup.pool)
            holder = lease_holder(connection, self._setup.pool, now_us=now_us)
        serving = len(self._place.probe.serving())
        live = sum(row.is_live for row in rows)
        running = live if rows else serving
        note = ScalingNote(
            pool=self._setup.pool,
            mode=self._setup.section.mode,
            wanted=running,
            running=running,
            serving=serving,
            seen_us=now_us,
            held=None if holder is None else f"{holder} holds the lease",
            holder=holder,
            rent_usd=self._setup.rent.pusd_per_hour / 1e12,
        )
        if plan is None:
            return note
        return msgspec.structs.replace(
            note,
            wanted=plan.wanted,
            plan_us=plan.at_us,
            reason=plan.reason,
            sentence=plan.sentence,
        )

    def _note(
        self,
        now_us: int,
        plan: ScalePlan | None,
        findings: Sequence[FleetFinding],
    ) -> ScalingNote:
        base = self._look_on(now_us)
        kinds = Counter(finding.kind.value for finding in findings)
        held = next((item.words for item in findings if item.kind is FindingKind.HELD), None)
        if held is None and self._setup.acts:
            held = self._hold(now_us)
        note = msgspec.structs.replace(
            base,
            held=held,
            findings={kind.value: kinds.get(kind.value, 0) for kind in FindingKind},
            words=tuple(finding.words for finding in findings),
            starts=self._counts["start"],
            stops=self._counts["stop"],
            inside=self._observer.inside,
            outside=self._observer.outside,
        )
        if plan is None:
            words = "what an engine can do is not known yet: it serves, and is measured by that"
            return msgspec.structs.replace(note, sentence=words, reason="unobserved")
        return msgspec.structs.replace(
            note,
            wanted=plan.wanted,
            plan_us=plan.at_us,
            reason=plan.reason.value,
            sentence=plan.sentence,
            next_usd=usd(plan.next.value_pusd),
            last_usd=None if plan.last is None else usd(plan.last.value_pusd),
        )
