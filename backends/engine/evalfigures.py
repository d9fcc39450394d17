"""Distance of a changed model from its baseline, measured on the same tokens.

The baseline's greedy answer is the text. Before each of its tokens both models predict the next.
`agreement` is the share of tokens with the same first choice. `perplexity` is the relative rise of
the candidate's perplexity over the baseline's. `kl` is the candidate's mean divergence in nats per
token. `score` is the mean loss of the user's checker. Intervals (95 %) resample whole prompts,
since tokens of one prompt are not independent. A verdict compares the interval with a limit: 5 %
(low risk) or 1 % (high). Only the likeliest tokens are known; all others form one bucket, so the
true KL is at least this.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Risk = Literal["low", "high"]
State = Literal["passes", "fails", "undecided"]
LIMITS: Mapping[Risk, float] = {"low": 0.05, "high": 0.01}
DRAWS = 1000
_TAIL = 0.025
_LEAST = 1e-9  # least probability of a bucket, which rounding may leave empty
_RULE_OF_THREE = 3.0  # no event in n trials: at most 3/n with 95 % confidence


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probabilities at one token of a text: of this token, and of the likeliest by token.

    They are natural logarithms.
    """

    token: str
    logprob: float
    top: Mapping[str, float]

    @property
    def first(self) -> str:
        return max(self.top, key=lambda token: self.top[token], default=self.token)


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """Comparison of one prompt. `differ` of `tokens` tokens have another first choice.

    `surprise` is the negative log-likelihood of the text in nats under baseline and candidate,
    `None` if an API returns no log-probabilities. `scores` are the checker's, in the same order.
    """

    tokens: int
    differ: int
    surprise: tuple[float, float] | None = None
    kl: float | None = None
    scores: tuple[float, float] | None = None
    same: bool = False  # both models' free answers are equal


@dataclass(frozen=True, slots=True)
class EvalFigure:
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EvaluationFigures:
    """Figures over all prompts, with 95 % intervals.

    `disagreement`, `perplexity` (its rise) and `score` (its loss) are shares; `kl` is in nats per
    token.
    """

    items: int
    tokens: int
    same: float
    disagreement: EvalFigure
    perplexities: tuple[float, float] | None = None
    perplexity: EvalFigure | None = None
    kl: EvalFigure | None = None
    scores: tuple[float, float] | None = None
    score: EvalFigure | None = None


@dataclass(frozen=True, slots=True)
class EvalConclusion:
    """Conclusion of an evaluation. `reasons` say what fails or is undecided."""

    state: State
    limit: float
    reasons: tuple[str, ...] = ()


def compare_forced(
    baseline: Sequence[TokenLogprob], candidate: Sequence[TokenLogprob]
) -> PromptComparison:
    """Compare both models on the same text.

    Raises `ValueError` when their tokenizers split the text differently.
    """
    if [logprob.token for logprob in baseline] != [logprob.token for logprob in candidate]:
        raise ValueError("baseline and candidate tokenize the text differently")
    pairs = list(zip(baseline, candidate, strict=True))
    return PromptComparison(
        tokens=len(pairs),
        differ=sum(logprob.first != other.first for logprob, other in pairs),
        surprise=(
            -sum(logprob.logprob for logprob in baseline),
            -sum(logprob.logprob for logprob in candidate),
        ),
        kl=sum(divergence(logprob.top, other.top) for logprob, other in pairs),
    )


def compare_free(
    baseline: Sequence[TokenLogprob], candidate: Sequence[TokenLogprob]
) -> PromptComparison:
    """Compare two free answers up to and including their first difference.

    Up to there both models had the same text before them. Log-probabilities count only if both
    models returned them for every compared token.
    """
    same = 0
    for logprob, other in zip(baseline, candidate, strict=False):
        if logprob.token != other.token:
            break
        same += 1
    differs = len(baseline) != len(candidate) or same < len(baseline)
    shared = list(zip(baseline[: same + 1], candidate[: same + 1], strict=False))
    known = [(logprob, other) for logprob, other in shared if logprob.top and other.top]
    surprise: tuple[float, float] | None = None
    if known and len(known) == len(shared):
        # At the first difference the text continues with the baseline's token.
        theirs = [other.top.get(logprob.token, min(other.top.values())) for logprob, other in known]
        surprise = (-sum(logprob.logprob for logprob, _ in known), -sum(theirs))
    kl = sum(divergence(logprob.top, other.top) for logprob, other in known) if surprise else None
    return PromptComparison(max(len(shared), same + differs), int(differs), surprise, kl)


def divergence(baseline: Mapping[str, float], candidate: Mapping[str, float]) -> float:
    """Return the KL divergence in nats of two sets of log-probabilities.

    Tokens that only one side lists go, with all others, into one bucket.
    """
    shared = baseline.keys() & candidate.keys()
    mine = {token: math.exp(baseline[token]) for token in shared}
    theirs = {token: math.exp(candidate[token]) for token in shared}
    total = sum(mine[token] * (baseline[token] - candidate[token]) for token in shared)
    rest, other = 1 - sum(mine.values()), 1 - sum(theirs.values())
    if rest > _LEAST:
        total += rest * math.log(rest / max(other, _LEAST))
    return max(0.0, total)


def figures(items: Sequence[PromptComparison], seed: int = 0) -> EvaluationFigures:
    """Return the figures of all prompts. Raises `ValueError` when no answer has a token."""
    tokens = sum(comparison.tokens for comparison in items)
    if not tokens:
        raise ValueError("no answer has a token")
    rng = random.Random(seed)  # noqa: S311  (chance that can be repeated, no secret)
    draws = [rng.choices(range(len(items)), k=len(items)) for _ in range(DRAWS)]

    def interval(
        of: Callable[[Sequence[PromptComparison]], float], least: float | None = None
    ) -> EvalFigure:
        found = sorted(of([items[place] for place in draw]) for draw in draws)
        low, high = found[int(_TAIL * DRAWS)], found[int((1 - _TAIL) * DRAWS) - 1]
        value = of(items)
        return EvalFigure(value, min(low, value), max(high, value, least or 0.0))

    surprises = [comparison.surprise for comparison in items if comparison.surprise]
    known = len(surprises) == len(items)
    scores = [comparison.scores for comparison in items if comparison.scores]
    scored = len(scores) == len(items)
    return EvaluationFigures(
        items=len(items),
        tokens=tokens,
        same=sum(comparison.same for comparison in items) / len(items),
        disagreement=interval(_disagreement, _RULE_OF_THREE / tokens),
        perplexities=_perplexities(surprises, tokens) if known else None,
        perplexity=interval(_rise) if known else None,
        kl=interval(_kl) if known else None,
        scores=_means(scores) if scored else None,
        score=interval(_loss, _RULE_OF_THREE / len(items)) if scored else None,
    )


def verdict(found: EvaluationFigures, limit: float, missing: int = 0) -> EvalConclusion:
    """Return the conclusion for a limit, judged by the checker's score if there is one.

    Without a score it is judged by agreement, and by perplexity if that is known. `missing` is the
    number of prompts that were not compared.
    """
    if found.score is not None:
        decided = {"score lost": found.score}
    else:
        decided = {"tokens that differ": found.disagreement}
        if found.perplexity is not None:
            decided["perplexity's rise"] = found.perplexity
    failed = tuple(
        f"{name}: {figure.value:.2%} ({figure.low:.2%} to {figure.high:.2%}), at most {limit:.2%}"
        for name, figure in decided.items()
        if figure.low > limit
    )
    if failed:
        return EvalConclusion("fails", limit, failed)
    if missing:
        return EvalConclusion("undecided", limit, (f"{missing} prompts have no answer of both",))
    open_ = tuple(
        f"{name}: {figure.low:.2%} to {figure.high:.2%} holds the limit {limit:.2%}: "
        "more prompts decide"
        for name, figure in decided.items()
        if figure.high > limit
    )
    return EvalConclusion("undecided" if open_ else "passes", limit, open_)


def _disagreement(items: Sequence[PromptComparison]) -> float:
    return sum(comparison.differ for comparison in items) / max(
        sum(comparison.tokens for comparison in items), 1
    )


def _rise(items: Sequence[PromptComparison]) -> float:
    mine, theirs = _surprise(items)
    return (
        math.exp(
            min((theirs - mine) / max(sum(comparison.tokens for comparison in items), 1), 700.0)
        )
        - 1
    )


def _surprise(items: Sequence[PromptComparison]) -> tuple[float, float]:
    pairs = [comparison.surprise or (0.0, 0.0) for comparison in items]
    return sum(mine for mine, _ in pairs), sum(theirs for _, theirs in pairs)


def _perplexities(pairs: Sequence[tuple[float, float]], tokens: int) -> tuple[float, float]:
    mine, theirs = (sum(pair[side] for pair in pairs) / tokens for side in (0, 1))
    return math.exp(mine), math.exp(min(theirs, 700.0))


def _kl(items: Sequence[PromptComparison]) -> float:
    return sum(comparison.kl or 0.0 for comparison in items) / max(
        sum(comparison.tokens for comparison in items), 1
    )


def _means(scores: Sequence[tuple[float, float]]) -> tuple[float, float]:
    count = len(scores)
    return sum(value for value, _ in scores) / count, sum(other for _, other in scores) / count


def _loss(items: Sequence[PromptComparison]) -> float:
    """Return the loss relative to the baseline's mean score; 0 if the baseline scores 0."""
    mine, theirs = _means([comparison.scores or (0.0, 0.0) for comparison in items])
    return (mine - theirs) / mine if mine > 0 else 0.0
