import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ledger.budgets.holds import HoldFlag, HoldLife, HoldState, expire, post, suspend, void

HELD = HoldLife("r1.1", held_pusd=100, expires_us=50)


def test_a_post_returns_the_rest():
    step = post(HELD, 30)
    assert (step.life.state, step.life.counted_pusd) == (HoldState.POSTED, 30)
    assert step.applied
    assert step.counted_delta_pusd == -70
    assert step.life.flags == frozenset()


def test_a_void_returns_everything():
    step = void(HELD)
    assert (step.life.state, step.life.counted_pusd) == (HoldState.VOIDED, 0)
    assert step.counted_delta_pusd == -100


def test_more_than_held_is_booked_and_flagged():
    step = post(HELD, 130)
    assert step.counted_delta_pusd == 30
    assert step.life.flags == {HoldFlag.OVER_HELD}


@pytest.mark.parametrize(
    ("first", "second"), [(lambda h: post(h, 30), lambda h: post(h, 30)), (void, void)]
)
def test_a_late_duplicate_changes_nothing(first, second):
    life = first(HELD).life
    step = second(life)
    assert step.life == life
    assert not step.applied
    assert step.counted_delta_pusd == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda h: post(h, 30), lambda h: post(h, 31)),
        (lambda h: post(h, 30), void),
        (void, lambda h: post(h, 30)),
    ],
)
def test_a_second_different_answer_is_flagged_and_not_booked(first, second):
    life = first(HELD).life
    step = second(life)
    assert step.life.flags == {HoldFlag.CONFLICT}
    assert (step.life.state, step.life.posted_pusd) == (life.state, life.posted_pusd)
    assert not step.applied
    assert step.counted_delta_pusd == 0


def test_an_expired_hold_waits_in_suspense_at_its_full_amount():
    early = expire(HELD, 49)
    assert not early.applied
    late = expire(HELD, 50)
    assert late.life.state is HoldState.SUSPENSE
    assert late.life.counted_pusd == 100
    assert late.counted_delta_pusd == 0
    assert not suspend(late.life).applied


@pytest.mark.parametrize(
    ("resolve", "counted"), [(lambda h: post(h, 30), 30), (lambda h: post(h, 130), 130), (void, 0)]
)
def test_only_evidence_clears_suspense_and_says_it_was_late(resolve, counted):
    step = resolve(suspend(HELD).life)
    assert step.applied
    assert step.life.counted_pusd == counted
    assert HoldFlag.LATE in step.life.flags


def test_a_resolved_hold_never_expires():
    life = post(HELD, 30).life
    assert not expire(life, 10**9).applied


def test_amounts_are_never_negative():
    with pytest.raises(ValueError, match="negative"):
        HoldLife("r1.1", held_pusd=-1, expires_us=0)
    with pytest.raises(ValueError, match="negative"):
        post(HELD, -1)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("post"), st.integers(0, 200)),
        st.tuples(st.just("void"), st.just(0)),
        st.tuples(st.just("expire"), st.integers(0, 100)),
    ),
    max_size=8,
)


def apply(life, event):
    kind, value = event
    if kind == "post":
        return post(life, value)
    return void(life) if kind == "void" else expire(life, value)


@given(EVENTS)
def test_deltas_add_up_to_what_is_counted_and_only_the_first_answer_counts(events):
    life, counted, answers = HELD, HELD.counted_pusd, 0
    for event in events:
        step = apply(life, event)
        counted += step.counted_delta_pusd
        life = step.life
        answers += step.applied and life.resolved
        assert life.counted_pusd == counted
    assert answers <= 1
    first = next((event for event in events if event[0] != "expire"), None)
    assert counted == (100 if first is None else first[1] if first[0] == "post" else 0)


@given(EVENTS)
def test_replaying_every_event_twice_ends_the_same(events):
    once, twice = HELD, HELD
    for event in events:
        once = apply(once, event).life
        twice = apply(apply(twice, event).life, event).life
    assert (once.state, once.posted_pusd) == (twice.state, twice.posted_pusd)


class HoldMachine(RuleBasedStateMachine):
    """A resolved hold stays as it is, whatever comes."""

    def __init__(self):
        super().__init__()
        self.life = HELD
        self.answer = None

    @rule(actual=st.integers(0, 200))
    def post(self, actual):
        self.life = post(self.life, actual).life

    @rule()
    def void(self):
        self.life = void(self.life).life

    @rule(at_us=st.integers(0, 100))
    def expire(self, at_us):
        self.life = expire(self.life, at_us).life

    @invariant()
    def the_first_answer_stands(self):
        if self.life.resolved:
            answer = (self.life.state, self.life.posted_pusd)
            assert self.answer in (None, answer)
            self.answer = answer


TestHoldMachine = HoldMachine.TestCase
