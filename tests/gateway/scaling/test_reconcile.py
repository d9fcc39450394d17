"""Reconcile, pure: everything listed is named, orders repeat, nothing is cut short."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scaling.actuator import ListedInstance
from gateway.scaling.reconcile import (
    ActionVerb,
    FindingKind,
    FleetRules,
    FleetView,
    FleetWish,
    reconcile,
)
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance

S = 1_000_000
NOW = 10_000 * S
RENT = InstanceRent(10**12)
RULES = FleetRules(0, 4, give_up_us=600 * S, grace_us=60 * S, drain_us=300 * S, follow_us=3 * S)
NONCES = [f"n{number}" for number in range(20)]


def row(place: int, **marks) -> FleetInstance:
    made = FleetInstance(f"p.{place}.t", "p", place, True, RENT, NOW - 5000 * S)
    return replace(made, **marks)


def served(place: int, **marks) -> FleetInstance:
    return row(place, seen_us=NOW - 4900 * S, ready_us=NOW - 4800 * S, **marks)


def listed(*places: int) -> tuple[ListedInstance, ...]:
    return tuple(ListedInstance(f"i-{place}", f"p.{place}.t", place) for place in places)


def view(*rows: FleetInstance, **more) -> FleetView:
    there = listed(*(item.place for item in rows if item.seen_us))
    serving = frozenset(item.place for item in rows if item.ready_us)
    return FleetView(**({"pool": "p", "now_us": NOW, "instances": rows, "listed": there,
                         "serving": serving} | more))  # fmt: skip


def steps(seen: FleetView, wanted: int, rules: FleetRules = RULES, **wish):
    found = reconcile(seen, FleetWish(wanted, **wish), rules, NONCES)
    return (
        [(action.verb.value, action.token) for action in found.actions],
        [finding.kind for finding in found.findings],
    )


def test_what_is_missing_starts_at_the_lowest_free_places():
    assert steps(view(served(0), served(2)), 4) == (
        [("start", "p.1.n0"), ("start", "p.3.n1")], [],
    )  # fmt: skip


def test_bounds_win_over_the_plan():
    assert steps(view(), 9)[0] == [("start", f"p.{n}.n{n}") for n in range(4)]
    assert steps(view(), 0, replace(RULES, least=1))[0] == [("start", "p.0.n0")]


@pytest.mark.parametrize(
    ("wish", "said"),
    [({"stop": ("p.1.t",)}, "p.1.t"), ({}, "p.2.t")],
)
def test_the_plans_own_choice_drains_first(wish, said):
    assert steps(view(served(0), served(1), served(2)), 2, **wish)[0] == [("drain", said)]


def test_ordered_fleets_empty_from_the_top():
    rules = replace(RULES, ordered=True)
    seen = view(served(0), served(1), served(2))
    assert steps(seen, 2, rules, stop=("p.0.t",))[0] == [("drain", "p.2.t")]
    assert steps(view(served(1)), 2, rules)[0] == [("start", "p.2.n0")]


def test_a_hold_begins_nothing_and_says_so():
    found = steps(view(served(0)), 3, hold="paused by ann")
    assert found == ([], [FindingKind.HELD])
    assert steps(view(served(0)), 1, hold="paused by ann") == ([], [])


def test_the_spend_limit_bounds_starts_and_says_so():
    found = steps(view(), 3, replace(RULES, can_start=1))
    assert found == ([("start", "p.0.n0")], [FindingKind.LIMITED])


@pytest.mark.parametrize(
    ("away", "busy", "stop_s", "verbs"),
    [
        ({}, (), 10, ["keep_away"]),  # its drain was begun, and nothing keeps requests away yet
        ({0: NOW - S}, (), 10, []),  # not every worker heard of it
        ({0: NOW - 5 * S}, (0,), 10, []),  # a stream is under way
        ({0: NOW - 5 * S}, (), 10, ["stop"]),
        ({0: NOW - 5 * S}, (0,), 400, ["stop"]),  # its drain is over
    ],
)
def test_a_drain_waits_for_every_host_and_every_stream(away, busy, stop_s, verbs):
    seen = view(served(0, stop_us=NOW - stop_s * S), away=away, busy=frozenset(busy))
    assert [verb for verb, _ in steps(seen, 0)[0]] == verbs


def test_a_drain_is_taken_back_before_another_engine_starts():
    seen = view(served(0, stop_us=NOW - 10 * S), away={0: NOW - S})
    assert steps(seen, 1)[0] == [("revive", "p.0.t")]


@pytest.mark.parametrize("hold", [None, "paused by somebody"])
def test_what_its_owner_takes_away_drains_at_once_and_another_starts(hold):
    taken = (replace(listed(0)[0], ends_us=NOW + 120 * S),)
    done, kinds = steps(view(served(0), listed=taken), 1, hold=hold)
    assert done == [("drain", "p.0.t"), *([] if hold else [("start", "p.1.n0")])]
    assert FindingKind.INTERRUPTED in kinds
    draining = view(served(0, stop_us=NOW - S), listed=taken, away={0: NOW - S})
    assert steps(draining, 1, hold=hold)[0] == ([] if hold else [("start", "p.1.n0")])


@pytest.mark.parametrize(
    ("asked_s", "verbs", "kinds"),
    [(10, ["repeat_start"], []), (700, ["drain"], [FindingKind.NEVER_READY])],
)
def test_a_start_that_shows_no_effect_is_repeated_then_given_up(asked_s, verbs, kinds):
    found = steps(view(row(0, asked_us=NOW - asked_s * S)), 1, replace(RULES, can_start=0))
    assert [verb for verb, _ in found[0]] == verbs
    assert [kind for kind in found[1] if kind is not FindingKind.LIMITED] == kinds


def test_an_engine_that_is_listed_and_never_serves_is_stopped():
    seen = view(row(0, seen_us=NOW - 4000 * S), serving=frozenset())
    verbs, kinds = steps(seen, 1, replace(RULES, can_start=0))
    assert verbs == [("drain", "p.0.t")]
    assert FindingKind.NEVER_READY in kinds


def test_serving_by_the_gateways_own_probe_is_what_ends_a_start():
    late = row(0, seen_us=NOW - 10 * S, asked_us=NOW - 20 * S)
    assert steps(view(late, serving=frozenset()), 1)[0] == []
    (action,) = reconcile(view(late, serving=frozenset({0})), FleetWish(1), RULES, NONCES).actions
    assert (action.verb, action.outcome) == (ActionVerb.READY, "done")


def test_an_unanswered_list_changes_nothing():
    seen = view(served(0), listed=None, unreachable="timed out")
    assert steps(seen, 4) == ([], [FindingKind.UNREACHABLE])


def test_a_list_that_forgets_is_believed_late_and_never_while_the_engine_serves():
    gone = served(0)
    assert steps(view(gone, listed=()), 1) == ([], [FindingKind.FORGOTTEN])
    seen = view(gone, listed=(), serving=frozenset(), missing_us={"p.0.t": NOW - 30 * S})
    assert steps(seen, 1) == ([], [FindingKind.FORGOTTEN])
    late = replace(seen, missing_us={"p.0.t": NOW - 61 * S})
    assert steps(late, 0) == ([("gone", "p.0.t")], [FindingKind.FORGOTTEN])
    still = replace(late, serving=frozenset({0}))
    assert steps(still, 1) == ([], [FindingKind.FORGOTTEN])


@pytest.mark.parametrize(("missed_s", "ended_s"), [(75, 75), (6000, 5000)])
def test_an_end_is_when_an_engine_was_first_missed_and_not_when_that_is_believed(missed_s, ended_s):
    """Never before its rent began, however long lists have lacked its token."""
    told = {"stop_us": NOW - 90 * S, "told_us": NOW - 80 * S}
    stranger = replace(row(1), token="p!i-1", place=None, owned=False)
    missing = dict.fromkeys(("p.0.t", "p!i-1"), NOW - missed_s * S)
    seen = view(served(0, **told), stranger, listed=(), serving=frozenset(), missing_us=missing)
    actions = reconcile(seen, FleetWish(0), RULES, NONCES).actions
    assert [(action.verb, action.at_us) for action in actions] == [
        (ActionVerb.GONE, NOW - ended_s * S)
    ] * 2


def test_an_engine_that_serves_in_the_place_of_an_earlier_one_is_no_sign_of_it():
    earlier = served(0, stop_us=NOW - 500 * S, told_us=NOW - 400 * S)
    later = replace(served(0), token="p.0.later")
    there = (ListedInstance("i-later", "p.0.later", 0),)
    seen = view(earlier, later, listed=there, missing_us={"p.0.t": NOW - 61 * S})
    assert steps(seen, 1) == ([("gone", "p.0.t")], [])
    alone = view(earlier, listed=(), serving=frozenset({0}), missing_us={"p.0.t": NOW - 61 * S})
    assert steps(alone, 0) == ([], [FindingKind.FORGOTTEN])


def test_two_engines_of_one_token_are_named_and_one_is_kept():
    twice = (*listed(0), ListedInstance("i-again", "p.0.t", 0))
    verbs, kinds = steps(view(served(0), listed=twice), 1)
    assert verbs == [("name_orphan", "p.0.t#i-again")]
    assert kinds == [FindingKind.DUPLICATE]


def test_what_nobody_asked_for_is_named_once_and_told_until_it_is_gone():
    strange = ListedInstance("i-strange")
    verbs, kinds = steps(view(listed=(strange,)), 0)
    assert (verbs, kinds) == ([("name_orphan", "p!i-strange")], [FindingKind.ORPHAN])
    known = replace(row(0), token="p!i-strange", place=None, owned=False)
    assert steps(view(known, listed=(strange,)), 0) == ([], [FindingKind.ORPHAN])
    assert steps(view(known, listed=()), 0) == ([], [])
    late = view(known, listed=(), missing_us={"p!i-strange": NOW - 61 * S})
    assert steps(late, 0) == ([("gone", "p!i-strange")], [])
    later = replace(known, token=f"p!i-strange~{NOW * S}")
    assert steps(view(later, listed=(strange,)), 0) == ([], [FindingKind.ORPHAN])


def test_what_comes_back_after_its_end_is_stopped_again():
    ended = served(0, stop_us=NOW - 500 * S, told_us=NOW - 400 * S, gone_us=NOW - 300 * S)
    seen = view(listed=listed(0), closed=(ended,))
    verbs, kinds = steps(seen, 0)
    assert (verbs, kinds) == ([("reopen", "p.0.t")], [FindingKind.RETURNED])


def test_a_stop_that_shows_no_effect_is_repeated_and_told():
    seen = view(served(0, stop_us=NOW - 500 * S, told_us=NOW - 100 * S))
    assert steps(seen, 0) == ([("stop", "p.0.t")], [FindingKind.STUCK])


def test_the_first_time_what_runs_is_taken_over():
    there = tuple(ListedInstance(f"pool:p/{n}", None, n) for n in range(2))
    rules = replace(RULES, adopts=True)
    verbs, kinds = steps(view(listed=there, is_first=True), 2, rules)
    assert [verb for verb, _ in verbs] == ["adopt", "adopt"]
    assert kinds == []
    assert steps(view(listed=there, is_first=False), 0, rules)[1] == [FindingKind.ORPHAN] * 2
    assert steps(view(listed=there, is_first=True), 2)[1][:2] == [FindingKind.ORPHAN] * 2


def test_replicas_without_tags_are_known_by_their_places():
    there = (ListedInstance("w-0", None, 0), ListedInstance("w-1", None, 1))
    verbs, kinds = steps(view(served(0), listed=there), 1)
    assert (verbs, kinds) == ([("name_orphan", "p!w-1")], [FindingKind.ORPHAN])


times = st.none() | st.integers(NOW - 5000 * S, NOW)
rows = st.lists(
    st.builds(
        row, st.integers(0, 3), seen_us=times, ready_us=times, stop_us=times, told_us=times
    ),
    max_size=4, unique_by=lambda item: item.place,
)  # fmt: skip
lists = st.none() | st.lists(
    st.builds(
        ListedInstance,
        st.sampled_from(["i-0", "i-1", "x"]),
        st.none() | st.sampled_from(["p.0.t", "p.1.t", "odd"]),
        st.none() | st.integers(0, 3),
    ),
    max_size=5,
)


@given(rows, lists, st.integers(0, 5), st.none() | st.integers(0, 3), st.booleans())
def test_whatever_is_there_bounds_hold_and_everything_listed_is_named(
    known, there, wanted, can_start, ordered
):
    rules = replace(RULES, can_start=can_start, ordered=ordered)
    seen = view(*known, listed=None if there is None else tuple(there))
    found = reconcile(seen, FleetWish(wanted), rules, NONCES)
    starts = [action for action in found.actions if action.verb is ActionVerb.START]
    places = {item.place for item in known}
    assert len(starts) <= (4 if can_start is None else can_start)
    assert all(action.place not in places for action in starts)
    assert len({action.token for action in starts}) == len(starts)
    live = sum(item.is_live for item in known)
    assert live + len(starts) <= max(live, rules.most)
    told = {finding.about for finding in found.findings} | {
        action.token for action in found.actions
    }
    own = {item.token for item in known} | {item.place for item in known}
    for item in there or ():
        key = item.token if item.token is not None else f"p!{item.name}"
        assert key in own or item.place in own or key in told
    if there is None:
        assert found.actions == ()
