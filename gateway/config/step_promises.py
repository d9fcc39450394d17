"""Check for TPOTs that a pool's engines cannot keep by their own steps, and remedies.

A chunked-prefill engine reads prompts in steps of up to a token budget, and decoding requests wait
for each whole step. So a full step may not exceed the promised TPOT if answers are short enough to
consist of such steps. For answers known to be long, half of the steps may be full, because the
promise is a mean over the answer.

Pure: step times come from the profile, the ledger or the caller.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from backends.engine.chunkbudget import full_step_s, prefill_budget
from backends.engines import ENGINE_KINDS
from backends.stepmodel import FittedStepModel
from gateway.config.aliases import logical_models
from gateway.config.faults import ConfigFault, Place, warning
from gateway.config.pool_seats import seat_count, started_count
from gateway.config.schema import PolicyRuleSection, Settings
from ledger.fleet.pool_records import CapacityRow

if TYPE_CHECKING:
    from backends.simulator.shape import EngineShape

LEAST_BUDGET = 256  # tokens; below it prefill is much slower
LONG_ANSWER = 9  # tokens; from then on half of an answer's steps may be full
VLLM_LIMITS = (256, 2048)  # defaults of `serve`: sequences, tokens
VLLM_BUDGET = "--max-num-batched-tokens"


class PoolSteps(NamedTuple):
    """Step time model of a pool's engines, and the tokens of a step."""

    step: FittedStepModel
    budget_tokens: int
    max_num_seqs: int
    kv_tokens: int

    @classmethod
    def of(cls, shape: "EngineShape") -> "PoolSteps":
        """Return the steps of an engine of this shape."""
        return cls(
            shape.step, shape.prefill_budget_tokens, shape.max_num_seqs, shape.kv_capacity_tokens
        )


class PolicyPromise(NamedTuple):
    """TPOT that a rule promises on a pool; `long`: its answers are known to be long."""

    policy: str
    tpot_ms: float
    is_long: bool = False


class BrokenPromise(NamedTuple):
    """Pool and policy that do not fit; `budget` would keep the TPOT, `None`: no budget would."""

    pool: str
    policy: str
    tpot_ms: float
    full_step_ms: float
    budget: int | None

    @property
    def words(self) -> str:
        """Return in one line why the promise is broken."""
        return (
            f"a step full of prompts takes {self.full_step_ms:.0f} ms on pool `{self.pool}`, longer"
            f" than the {self.tpot_ms:g} ms for a token that policy `{self.policy}` promises"
        )

    def cure(self, *, managed: bool) -> str:
        """Return what to set: a setting for managed engines, a flag for others."""
        if self.budget is None:
            return "no step is short enough: promise more, or route short answers elsewhere"
        setting = f"`prefill_budget_tokens: {self.budget}`"
        if managed:
            return f"set {setting}"
        return f"start its engines with {VLLM_BUDGET} {self.budget}, and say {setting}"


def promises_on(
    settings: Settings, pool: str, shortest: Mapping[str, int] | None = None
) -> list[PolicyPromise]:
    """Return the TPOTs that requests on a pool may be promised, one per policy.

    `shortest` maps logical models to the minimum length of nearly all answers, where known.
    """
    found: dict[str, PolicyPromise] = {}
    for model, section in logical_models(settings):
        if f"pool:{pool}" not in section.reachable:
            continue
        is_long = (shortest or {}).get(model, 0) >= LONG_ANSWER
        for rule in _rules_of(settings, model):
            tpot = rule.slo.tpot_ms
            if tpot is None or (rule.candidates and f"pool:{pool}" not in rule.candidates):
                continue
            known = found.get(rule.name)
            stays_long = is_long and (known is None or known.is_long)
            found[rule.name] = PolicyPromise(rule.name, tpot, stays_long)
    return list(found.values())


def limit_s(promise: PolicyPromise, steps: PoolSteps) -> float:
    """Return the maximum duration of a full step under a promise, in seconds."""
    promised_s = promise.tpot_ms / 1e3
    if not promise.is_long:
        return promised_s
    plain_s = full_step_s(steps.step, 0)
    return max(promised_s, 2.0 * promised_s - plain_s)


def kept_budget(steps: PoolSteps, promises: list[PolicyPromise]) -> int | None:
    """Return the largest token budget that keeps all promises; `None` if no useful one does."""
    least = min([limit_s(promise, steps) for promise in promises], default=inf)
    if full_step_s(steps.step, steps.budget_tokens) <= least:
        return steps.budget_tokens
    found = prefill_budget(
        steps.step, tpot_s=least, kv_tokens=steps.kv_tokens, max_sequences=steps.max_num_seqs
    )
    return None if found is None or found < LEAST_BUDGET else min(found, steps.budget_tokens)


def kept_sequences(steps: PoolSteps, promises: list[PolicyPromise]) -> int:
    """Return the largest batch whose decode steps keep all promises with half a KV cache.

    It is at most the current one; promises that a single sequence breaks are ignored.
    """
    least = min([promise.tpot_ms / 1e3 for promise in promises], default=inf)
    none_s = steps.step.step_s(sequences=0, context_tokens=steps.kv_tokens / 2, prefill_tokens=0)
    if least == inf or steps.step.b_s <= 0.0 or least < none_s + steps.step.b_s:
        return steps.max_num_seqs
    return min(steps.max_num_seqs, int((least - none_s) / steps.step.b_s))


def started_steps(
    settings: Settings,
    pool: str,
    steps: PoolSteps,
    shortest: Mapping[str, int] | None = None,
) -> PoolSteps:
    """Return the steps with the limits of the pool's engines.

    Configured limits have precedence. Otherwise `serve` chooses them for engines that it starts;
    promises that no limit keeps are ignored.
    """
    engine = settings.pools[pool].engine
    sequences, budget = steps.max_num_seqs, steps.budget_tokens
    if is_started(settings, pool):
        promises = promises_on(settings, pool, shortest)
        budget = kept_budget(steps, promises) or budget
        sequences = min(kept_sequences(steps, promises), max(budget, 1))
    return steps._replace(
        max_num_seqs=engine.max_num_seqs or sequences,
        budget_tokens=engine.prefill_budget_tokens or budget,
    )


def is_started(settings: Settings, pool: str) -> bool:
    """Return whether `serve` starts all engines of a pool and may choose their limits."""
    section = settings.pools[pool]
    started = started_count(section)
    return 0 < started == seat_count(section) and section.engine.profile is None


def profile_steps(settings: Settings, pool: str) -> PoolSteps | None:
    """Return the step times of a simulated pool's profile; `None` without one."""
    from backends.simulator.shapefile import ShapeFileError  # noqa: PLC0415  (few commands simulate)

    engine = settings.pools[pool].engine
    try:
        preset = ENGINE_KINDS[engine.kind].profile(engine.model)
    except ShapeFileError:  # a fault that is reported elsewhere
        return None
    return None if preset is None else PoolSteps.of(preset.shape)


def measured_steps(rows: Iterable[CapacityRow]) -> dict[str, PoolSteps]:
    """Return the step times in the ledger by pool: the first known one of each."""
    found: dict[str, PoolSteps] = {}
    for row in rows:
        a, b, c = row.step_a_s, row.step_b_s, row.step_c_s
        d, t0, tokens = row.step_d_s, row.step_t0_s, row.kv_capacity_tokens
        if row.pool in found or tokens is None:
            continue
        if a is not None and b is not None and c is not None and d is not None:
            found[row.pool] = PoolSteps(
                FittedStepModel(a, b, c, d, t0 or 0.0),
                row.prefill_budget_tokens or VLLM_LIMITS[1],
                row.max_num_seqs or VLLM_LIMITS[0],
                tokens,
            )
    return found


def broken_promises(
    pool: str, steps: PoolSteps, promises: list[PolicyPromise]
) -> Iterator[BrokenPromise]:
    """Yield each policy that the pool's engines break by their own steps."""
    full_s = full_step_s(steps.step, steps.budget_tokens)
    for promise in promises:
        if full_s > limit_s(promise, steps):
            yield BrokenPromise(
                pool, promise.policy, promise.tpot_ms, 1e3 * full_s,
                kept_budget(steps, [promise]),
            )  # fmt: skip


def promise_faults(
    settings: Settings, measured: Mapping[str, PoolSteps], *, at_policies: bool = False
) -> Iterator[ConfigFault]:
    """Warn of each policy whose TPOT a pool breaks by its own steps.

    With `at_policies` the place is the policy's, otherwise the pool's.
    """
    places = {rule.name: number for number, rule in enumerate(settings.policies)}
    for name in settings.pools:
        known = profile_steps(settings, name) or measured.get(name)
        if known is None:
            continue
        steps, managed = started_steps(settings, name, known), is_started(settings, name)
        for broken in broken_promises(name, steps, promises_on(settings, name)):
            words = f"{broken.words}: short answers break it; {broken.cure(managed=managed)}"
            policy: Place = ("policies", places[broken.policy], "slo", "tpot_ms")
            pool: Place = ("pools", name, "engine")
            yield warning(policy if at_policies else pool, words, upon=(("models",),))


def chosen_limits(settings: Settings, measured: Mapping[str, PoolSteps]) -> Iterator[str]:
    """Yield lines on limits that `serve` chooses to keep promises, if not the defaults."""
    for name in settings.pools:
        known = profile_steps(settings, name) or measured.get(name)
        engine = settings.pools[name].engine
        if known is None or engine.prefill_budget_tokens or not is_started(settings, name):
            continue
        steps = started_steps(settings, name, known)
        if steps.budget_tokens != known.budget_tokens:
            least = min(promises_on(settings, name), key=lambda each: limit_s(each, known))
            yield (
                f"pools.{name}: `serve` starts its engines with prefill_budget_tokens"
                f" {steps.budget_tokens} in place of {known.budget_tokens}, so that a token takes"
                f" no more than policy `{least.policy}` promises ({least.tpot_ms:g} ms)"
            )


def _rules_of(settings: Settings, model: str) -> Iterator[PolicyRuleSection]:
    """Yield the rules that requests of a model can fall under, without shadow rules."""
    for rule in settings.policies:
        asked = rule.match
        if rule.shadow or (asked.models and not any(_names(each, model) for each in asked.models)):
            continue
        yield rule
        if not (asked.teams or asked.when or asked.times):
            return


def _names(pattern: str, model: str) -> bool:
    return model.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == model
