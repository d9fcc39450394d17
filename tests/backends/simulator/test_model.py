"""The engine in virtual time: exact small schedules, and properties over random ones."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.simulator.model import SimulatedEngine
from backends.simulator.shape import EngineShape, SequenceEventKind, StepTiming, TooLargeError
from backends.stepmodel import FittedStepModel

STEP = FittedStepModel(a_s=0.010, b_s=0.001, c_s=0.00001, d_s=0.0001, t0_s=0.005)


def shape(**changes):
    values = {"blocks": 101, "block_tokens": 16, "max_num_seqs": 8, "prefill_budget_tokens": 64}
    return EngineShape(step=STEP, **{"context_tokens": 1024, **values, **changes})


def run(engine, until=1e6):
    return engine.advance(until)


def test_one_request_takes_what_the_step_model_says():
    engine = SimulatedEngine(shape())
    engine.submit("r", 1.0, prompt_tokens=50, output_tokens=3)
    events = run(engine)
    first = 1.0 + 0.005 + 0.010 + 50 * 0.0001
    second = 0.010 + 0.001 + 50 * 0.00001
    third = second + 0.00001
    assert [(e.what, e.generated) for e in events] == [
        (SequenceEventKind.ADMITTED, 0),
        (SequenceEventKind.FIRST, 1),
        (SequenceEventKind.FINISHED, 3),
    ]
    assert [e.at_s for e in events] == pytest.approx([1.005, first, first + second + third])
    assert engine.totals.busy_s == pytest.approx(events[2].at_s - 1.005)


def test_prompts_are_prefilled_in_chunks_of_the_budget_in_arrival_order():
    engine = SimulatedEngine(shape(prefill_budget_tokens=64))
    engine.submit("long", 0.0, prompt_tokens=100, output_tokens=1)
    engine.submit("short", 0.0, prompt_tokens=20, output_tokens=1)
    events = run(engine)
    # 64 of long; then its 36 and the 20 of short fit into one step
    end = 0.005 + (0.010 + 64 * 0.0001) + (0.010 + 56 * 0.0001)
    firsts = {e.id: e.at_s for e in events if e.what is SequenceEventKind.FIRST}
    assert firsts["long"] == pytest.approx(end)
    assert firsts["short"] == pytest.approx(end)


def test_decoding_comes_before_prefill_within_the_budget():
    engine = SimulatedEngine(shape(prefill_budget_tokens=4))
    engine.submit("a", 0.0, prompt_tokens=4, output_tokens=50)
    engine.advance(0.02)
    assert engine.running == 1
    engine.submit("b", 0.02, prompt_tokens=9, output_tokens=1)
    events = run(engine)
    b_first = next(e for e in events if e.id == "b" and e.what is SequenceEventKind.FIRST)
    # 3 prompt tokens a step beside one decoding sequence: 3 steps
    steps = [e for e in events if e.at_s <= b_first.at_s]
    assert steps[-1].id == "b"
    assert engine.totals.prompt_tokens == 13


def test_max_num_seqs_queues_the_rest():
    engine = SimulatedEngine(shape(max_num_seqs=2))
    for name in "abc":
        engine.submit(name, 0.0, prompt_tokens=4, output_tokens=10)
    engine.advance(0.05)
    assert (engine.running, engine.waiting) == (2, 1)
    assert [e.id for e in run(engine) if e.what is SequenceEventKind.FIRST] == ["c"]


def test_kv_is_counted_in_blocks_with_one_reserved():
    engine = SimulatedEngine(shape(blocks=24, block_tokens=128))
    assert engine.shape.kv_capacity_tokens == 23 * 128
    engine.submit("a", 0.0, prompt_tokens=129, output_tokens=300)
    engine.advance(0.005 + 0.010 + 64 * 0.0001)
    assert engine.kv_used_tokens == 256
    assert engine.kv_usage_ratio == pytest.approx(2 / 23)
    run(engine)
    assert engine.kv_used_tokens == 0


def test_a_sequence_that_can_never_fit_is_refused():
    engine = SimulatedEngine(shape(blocks=4, block_tokens=16))
    with pytest.raises(TooLargeError):
        engine.submit("a", 0.0, prompt_tokens=40, output_tokens=9)
    engine.submit("b", 0.0, prompt_tokens=40, output_tokens=8)
    assert [e.what for e in run(engine)] == [
        SequenceEventKind.ADMITTED,
        SequenceEventKind.FIRST,
        SequenceEventKind.FINISHED,
    ]


def test_the_last_admitted_is_preempted_and_finishes_later():
    engine = SimulatedEngine(shape(blocks=8, block_tokens=16, prefix_caching=False))
    engine.submit("old", 0.0, prompt_tokens=30, output_tokens=60)
    engine.submit("new", 0.0, prompt_tokens=30, output_tokens=60)
    events = run(engine)
    preempted = [e for e in events if e.what is SequenceEventKind.PREEMPTED]
    assert preempted
    assert {e.id for e in preempted} == {"new"}
    assert [e.id for e in events if e.what is SequenceEventKind.FINISHED] == ["old", "new"]
    assert engine.totals.preemptions == len(preempted)
    assert sum(e.what is SequenceEventKind.FIRST for e in events) == 2  # never a second first token
    assert engine.totals.generation_tokens == 120


def test_enough_blocks_mean_no_preemption():
    """The negative control of the test above."""
    engine = SimulatedEngine(shape(blocks=13, block_tokens=16, prefix_caching=False))
    engine.submit("old", 0.0, prompt_tokens=30, output_tokens=60)
    engine.submit("new", 0.0, prompt_tokens=30, output_tokens=60)
    assert not [e for e in run(engine) if e.what is SequenceEventKind.PREEMPTED]


def test_a_repeated_prompt_hits_its_full_blocks_but_computes_its_last_token():
    engine = SimulatedEngine(shape())
    engine.submit("a", 0.0, prompt_tokens=48, output_tokens=1, hashes=(1, 2, 3))
    run(engine)
    engine.submit("b", 1e6, prompt_tokens=48, output_tokens=1, hashes=(1, 2, 3))
    run(engine, 2e6)
    assert engine.totals.prefix_hits == 32
    assert engine.totals.prefix_queries == 96
    assert engine.totals.prompt_tokens == 96


def test_a_prefix_is_shared_while_it_is_held():
    engine = SimulatedEngine(shape(blocks=11))
    engine.submit("a", 0.0, prompt_tokens=65, output_tokens=20, hashes=(1, 2, 3, 4))
    engine.advance(0.1)
    engine.submit("b", 0.1, prompt_tokens=65, output_tokens=20, hashes=(1, 2, 3, 4))
    events = engine.advance(0.16)
    assert engine.running == 2
    assert [e.cached for e in events if e.what is SequenceEventKind.ADMITTED] == [64]
    assert engine.kv_used_tokens == (4 + 1 + 1) * 16


def test_an_abort_frees_at_once_and_reports_what_was_generated():
    engine = SimulatedEngine(shape(), tokens=True)
    engine.submit("a", 0.0, prompt_tokens=10, output_tokens=500)
    events = engine.advance(1.0)
    assert engine.abort("a") == events[-1].generated
    assert engine.kv_used_tokens == 0
    assert run(engine) == []
    assert engine.abort("a") is None
    assert engine.totals.aborted == 1


def test_an_abort_before_the_first_token_generates_nothing():
    engine = SimulatedEngine(shape())
    engine.submit("a", 0.0, prompt_tokens=100, output_tokens=5)
    assert engine.abort("a") == 0  # not visible to the scheduler yet
    engine.submit("b", 1.0, prompt_tokens=100, output_tokens=5)
    engine.advance(1.006)
    assert engine.running == 1
    assert engine.abort("b") == 0
    assert run(engine) == []
    assert engine.totals.generation_tokens == 0
    assert engine.kv_used_tokens == 0


def schedule(seed, count):
    rng = random.Random(seed)
    at = 0.0
    for index in range(count):
        at += rng.expovariate(20)
        prompt = rng.randint(1, 200)
        head = rng.randint(0, 3)
        hashes = tuple(hash((head if i < 4 else index, i)) for i in range(prompt // 16))
        aborted = at + rng.random() if rng.random() < 0.15 else None
        yield f"r{index}", at, prompt, rng.randint(1, 120), hashes, aborted


def replay(engine, seed, count, slices=None):
    """Submit and abort a random schedule; events other than single tokens, rounded."""
    moves = []
    for name, at, prompt, output, hashes, aborted in schedule(seed, count):
        moves.append((at, "submit", name, prompt, output, hashes))
        if aborted is not None:
            moves.append((aborted, "abort", name, 0, 0, ()))
    moves.extend((at, "look", "", 0, 0, ()) for at in slices or ())
    events = []
    for at, what, name, prompt, output, hashes in sorted(moves):
        events += engine.advance(at)
        assert engine.kv_used_tokens <= engine.shape.kv_capacity_tokens
        if what == "submit":
            engine.submit(name, at, prompt_tokens=prompt, output_tokens=output, hashes=hashes)
        elif what == "abort":
            engine.abort(name)
    events += engine.advance(1e6)
    kept = [e for e in events if e.what is not SequenceEventKind.TOKEN]
    return [(round(e.at_s, 7), e.id, e.what, e.generated) for e in kept]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), blocks=st.sampled_from([24, 40, 300]))
def test_passing_many_steps_at_once_equals_passing_one_by_one(seed, blocks):
    fast = SimulatedEngine(shape(blocks=blocks))
    slow = SimulatedEngine(shape(blocks=blocks), tokens=True)
    cuts = [i * 0.0371 for i in range(60)]
    assert replay(fast, seed, 60) == replay(slow, seed, 60, cuts)
    assert fast.totals.generation_tokens == slow.totals.generation_tokens
    assert fast.totals.preemptions == slow.totals.preemptions
    assert fast.totals.prefix_hits == slow.totals.prefix_hits
    assert fast.totals.busy_s == pytest.approx(slow.totals.busy_s)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_request_ends_once_and_nothing_is_left_held(seed):
    engine = SimulatedEngine(shape(blocks=24))
    events = replay(engine, seed, 80)
    finished = [e[1] for e in events if e[2] is SequenceEventKind.FINISHED]
    assert len(finished) == len(set(finished)) == 80 - engine.totals.aborted
    assert engine.unfinished == 0
    assert engine.kv_used_tokens == 0
    assert engine.context_tokens == 0
    assert engine.queued_prefill_tokens == 0
    assert engine.next_s() is None


def test_tokens_come_one_by_one_when_asked_for():
    engine = SimulatedEngine(shape(), tokens=True)
    engine.submit("a", 0.0, prompt_tokens=10, output_tokens=5)
    events = run(engine)
    assert [e.generated for e in events] == [0, 1, 2, 3, 4, 5, 5]
    assert [e.what for e in events][2:6] == [SequenceEventKind.TOKEN] * 4


def test_next_s_names_the_next_moment_of_change():
    engine = SimulatedEngine(shape(), tokens=True)
    assert engine.next_s() is None
    engine.submit("a", 0.0, prompt_tokens=10, output_tokens=2)
    assert engine.next_s() == pytest.approx(0.005)
    assert [e.what for e in engine.advance(0.005)] == [SequenceEventKind.ADMITTED]
    at = engine.next_s()
    assert [e.at_s for e in engine.advance(at)] == [at]


def test_who_comes_while_many_are_streamed_to_is_read_in_turn_and_the_same_every_time():
    """Phases of the round differ, so a later request may be read first; nobody is lost."""
    pace = StepTiming(STEP, stream_s=0.05, stream_power=1.0, eager_s=0.02, captured_s=0.015)

    def play():
        engine = SimulatedEngine(shape(pace=pace, max_num_seqs=64, blocks=2001))
        for number in range(6):
            engine.submit(f"old{number}", 0.0, prompt_tokens=10, output_tokens=60)
        events = engine.advance(0.2)
        for number in range(12):
            at_s = 0.2 + 0.01 * number
            events += engine.advance(at_s)
            engine.submit(f"new{number}", at_s, prompt_tokens=10, output_tokens=5)
        return events + run(engine)

    events = play()
    assert events == play()
    admitted = [
        e.id for e in events if e.what is SequenceEventKind.ADMITTED and e.id.startswith("new")
    ]
    assert sorted(admitted) == sorted(f"new{number}" for number in range(12))
    assert admitted != sorted(admitted, key=lambda name: int(name[3:]))
    assert sum(e.what is SequenceEventKind.FINISHED for e in events) == 18
