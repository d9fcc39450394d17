"""Rules of each estimator: the observations it accepts, and how far one of them moves it.

A client and a provider that cooperate control what an observation contains. So each estimator names
the observations that it accepts, limits the step of one, forgets with time, and is bounded in size.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class Estimator(StrEnum):
    """An estimate learned from finished requests; the value is a label in metrics."""

    BYTES_PER_TOKEN = "bytes_per_token"  # noqa: S105  (no password)
    OUTPUT_TOKENS = "output_tokens"
    API_LATENCY = "api_latency"
    OUTPUT_OVERRUN = "output_overrun"
    UNSEEN_OUTPUT = "unseen_output"
    PROMPT_OVERRUN = "prompt_overrun"
    CACHED_SHARE = "cached_share"


class Objection(StrEnum):
    """The reason why an observation is not used; the value is a label in metrics."""

    UNREPORTED = "unreported"  # the answer did not finish, or its usage is incomplete
    DISPUTED = "disputed"
    KIND = "kind"  # sound, and kinds charged by searches: no text tokens were counted
    MEDIA = "media"  # tokens of pictures, sound and files cannot be derived from bytes
    TOOLS = "tools"  # what a hosted tool fetches is read by the model, too
    MEMBERS = "members"  # a member of the request that may make the target read more
    TOO_MANY = "too_many"  # more tokens than the bytes and a template can be
    TOO_FEW = "too_few"  # fewer tokens than the longest of any vocabulary


class EstimatorRule(NamedTuple):
    """Rule of one estimator: texts for the documentation, figures for the code and tests.

    `step` is the maximum factor, up or down, by which one observation moves the estimate. It is
    `None` for a bound, which covers every observation at once, up to its limit. `half_life_s` is
    the age at which an observation weighs half (`share_left`). `returns` is the number of honest
    observations that bring the estimate within 5 % of the true value from any state; `None` where
    only time does. `scopes` says whose estimates an observation can move. `shown` and `reset` are
    the arguments of `breakeven estimates`.
    """

    learns_from: str
    key: str
    step: float | None
    half_life_s: float
    returns: int | None
    limits: str
    shared: str
    scopes: str
    shown: str
    reset: str


CONTEXT_MARGIN: Final = 1.1  # over a prompt's estimate, until its own error is known
HOUR_S: Final = 3600.0
DAY_S: Final = 86_400.0
AGING_S: Final = HOUR_S  # ages are applied in steps of at least this
UNUSED_S: Final = 30 * DAY_S  # estimates unused for this long are dropped

ESTIMATORS: Final[dict[Estimator, EstimatorRule]] = {
    Estimator.BYTES_PER_TOKEN: EstimatorRule(
        learns_from="finished requests with reported, undisputed usage in tokens, with text and "
        "known members alone: no media, files or hosted tools",
        key="model and team",
        step=1.25,
        half_life_s=7 * DAY_S,
        returns=3000,
        limits="1/4 to 128 bytes a token; a prompt is at most its bytes and 64 tokens of template, "
        "2,048 where that many were seen; its margin in a context is at most 1.5",
        shared="by the workers of a host, and kept over restarts: `run/estimates`",
        scopes="the model's own, of the team that asked",
        shown="show",
        reset="reset --model M --team T",
    ),
    Estimator.OUTPUT_TOKENS: EstimatorRule(
        learns_from="finished answers with reported, undisputed usage, of every kind",
        key="model, team and size of the prompt",
        step=2.0,
        half_life_s=7 * DAY_S,
        returns=20_000,
        limits="changes no hold: holds use the limit of the request or the model",
        shared="by the workers of a host within a second, at most 64 a second; a worker that "
        "starts reads the last 4,000 attempts of the ledger",
        scopes="the model's own, of the team that asked",
        shown="show",
        reset="reset --model M --team T",
    ),
    Estimator.API_LATENCY: EstimatorRule(
        learns_from="attempts at an API that returned a token",
        key="target",
        step=1.7,  # of the second observation; 1.06 once twenty were seen, all alike
        half_life_s=DAY_S,
        returns=200,
        limits="an observation counts as at most three deviations from the median",
        shared="by the workers of a host; a worker's own part ends with it",
        scopes="the target's, for all teams",
        shown="targets",
        reset="reset --target P/M",
    ),
    Estimator.OUTPUT_OVERRUN: EstimatorRule(
        learns_from="answers with possible usage, and more output than they were held for",
        key="target",
        step=None,
        half_life_s=DAY_S,
        returns=None,
        limits="twice the maximum seen, at most the model's longest answer and 200,000 tokens a "
        "choice",
        shared="by the workers of a host, and kept over restarts: `run/estimates`",
        scopes="the target's: for the team that saw it, and for all as far as two teams did; bills "
        "of requests that ask to think count for such requests",
        shown="targets",
        reset="reset --target P/M",
    ),
    Estimator.UNSEEN_OUTPUT: EstimatorRule(
        learns_from="finished answers of APIs with reported, undisputed usage",
        key="target",
        step=2.0,
        half_life_s=7 * DAY_S,
        returns=530,
        limits="20,000 tokens a second, steps from 1,000, unknown until a step reaches the "
        "observed rate, and the hold of the attempt",
        shared="by the workers of a host, and kept over restarts: `run/estimates`",
        scopes="the target's, for all teams, of abandoned attempts alone; hidden thinking counts "
        "for the team that saw it, and for all where two did",
        shown="targets",
        reset="reset --target P/M",
    ),
    Estimator.PROMPT_OVERRUN: EstimatorRule(
        learns_from="answers with reported, undisputed usage that counts more for a prompt's "
        "pictures, sound or files than they were held for; no hosted tools",
        key="target",
        step=None,
        half_life_s=DAY_S,
        returns=None,
        limits="twice the maximum seen, at most 50,000 tokens a picture, 4 times a sound's bound, "
        "and 2,000,000 tokens of a prompt with files or beyond its context",
        shared="by the workers of a host, and kept over restarts: `run/estimates`",
        scopes="the target's: for the team that saw it, and for all as far as two teams did; of "
        "prompts with pictures, sound or files, or beyond the context",
        shown="targets",
        reset="reset --target P/M",
    ),
    Estimator.CACHED_SHARE: EstimatorRule(
        learns_from="finished answers of APIs with reported, undisputed usage, to a prompt whose "
        "beginning was sent there within the time of the provider's prompt cache",
        key="target",
        step=None,
        half_life_s=DAY_S,
        returns=80,
        limits="0 to 1.125; changes no hold: it lowers the expected cost of a request",
        shared="by the workers of a host, and kept over restarts: `run/estimates`",
        scopes="the target's, for all teams",
        shown="targets",
        reset="reset --target P/M",
    ),
}


def _step_of(estimator: Estimator) -> float:
    step = ESTIMATORS[estimator].step
    assert step is not None, "no bound, which has none"
    return step


# The estimators use the table's figures, so that documentation and code agree.
RATIO_STEP: Final = _step_of(Estimator.BYTES_PER_TOKEN)
RATIO_HALF_LIFE_S: Final = ESTIMATORS[Estimator.BYTES_PER_TOKEN].half_life_s
LENGTH_STEP: Final = _step_of(Estimator.OUTPUT_TOKENS)
LENGTH_HALF_LIFE_S: Final = ESTIMATORS[Estimator.OUTPUT_TOKENS].half_life_s
LATENCY_STEP: Final = _step_of(Estimator.API_LATENCY)
LATENCY_HALF_LIFE_S: Final = ESTIMATORS[Estimator.API_LATENCY].half_life_s
OVERRUN_HALF_LIFE_S: Final = ESTIMATORS[Estimator.OUTPUT_OVERRUN].half_life_s
PROMPT_HALF_LIFE_S: Final = ESTIMATORS[Estimator.PROMPT_OVERRUN].half_life_s
CACHED_HALF_LIFE_S: Final = ESTIMATORS[Estimator.CACHED_SHARE].half_life_s
UNSEEN_HALF_LIFE_S: Final = ESTIMATORS[Estimator.UNSEEN_OUTPUT].half_life_s
UNSEEN_STEP: Final = _step_of(Estimator.UNSEEN_OUTPUT)


def share_left(age_s: float, half_life_s: float) -> float:
    """Return the weight left of an observation of this age in seconds; 1 for a negative age."""
    return 1.0 if age_s <= 0.0 else float(0.5 ** (age_s / half_life_s))
