"""Keeps what a worker learns: opened at its start, reset by operators, told to `/metrics`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from gateway.clock import Clock, next_tick
from gateway.control.answer_lengths import is_forgotten, known_lengths, teach_length
from gateway.control.estimate_resets import EstimateReset, resets_of
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable
from gateway.fleet.length_exchange import HEAR_S, LENGTHS_FILE, LengthExchange
from gateway.fleet.provider_caches import PROVIDER_CACHES_FILE, CacheForecast, ProviderCaches
from gateway.fleet.target_stats import TargetStats
from gateway.request.plan import LearnedEstimates
from gateway.runtime import Runtime
from ledger.lengths import AnswerLength
from ledger.overrides import Override
from router.estimator_rules import AGING_S, Estimator

HEARINGS = 60  # from one look at the age of estimates to the next


class HostEstimates:
    """`learned` is what requests use: the host's table, and lengths that its workers tell."""

    def __init__(
        self,
        run_dir: Path,
        past: Sequence[AnswerLength],
        wall_us: Callable[[], int],
        experience: TargetStats,
        exchange: LengthExchange | None = None,
    ) -> None:
        """`exchange`: where workers of the host tell each other of lengths."""
        self._table = EstimateTable(run_dir / ESTIMATES_FILE)
        self._past = past
        self._wall_us = wall_us
        self._experience = experience
        self._reset = 0
        self._aged_s = wall_us() / 1e6
        lengths = known_lengths(past, self._aged_s)
        table = self._table
        self._caches = ProviderCaches(run_dir / PROVIDER_CACHES_FILE)
        self.learned = LearnedEstimates(
            table.ratio,
            lengths,
            table.target_output,
            table.target_prompts,
            CacheForecast(self._caches, table.cached_share),
            exchange,
        )

    def close(self) -> None:
        self._table.close()
        self._caches.close()
        if self.learned.exchange is not None:
            self.learned.exchange.close()

    def hear(self) -> None:
        """Learn the lengths of answers that the other workers of the host saw."""
        if self.learned.exchange is not None:
            for length in self.learned.exchange.hear():
                key, prompt_tokens, output_tokens, cut = length
                self.learned.outputs.observe(key, prompt_tokens, output_tokens, cut=cut)

    def reset(self, overrides: Sequence[Override]) -> None:
        """Carry out the new resets among them; on the table once, by the worker that is first.

        Lengths were read at the start, those of answers before a reset among them. Answers since
        then are learned again.
        """
        for reset in resets_of(overrides, self._table.reset):
            if reset.of_texts:
                self._table.ratio.forget(reset.model, reset.team)
            if reset.of_targets:
                self._table.target_output.forget(reset.target)
                self._table.target_prompts.forget(reset.target)
                self._table.cached_share.forget(reset.target)
            self._table.reset_to(reset.number)
        resets = resets_of(overrides, self._reset)
        if resets:
            self.hear()  # what was told before them is forgotten, too
        for reset in resets:
            if reset.of_targets:
                self._experience.forget(reset.target)
            if reset.of_texts:
                self._relearn(reset)
            self._reset = reset.number

    def _relearn(self, reset: EstimateReset) -> None:
        self.learned.outputs.forget(reset.model, reset.team)
        for length in self._past:
            if reset.covers(length.model, length.team_id) and not is_forgotten(length, reset):
                teach_length(self.learned.outputs, length)

    def age(self, now_s: float) -> None:
        """Let every estimator forget what is old; `now_s` is wall clock."""
        self._table.sweep(now_s)
        self.learned.outputs.age(now_s)
        if not 0.0 <= now_s - self._aged_s < AGING_S:
            self._experience.age(now_s - self._aged_s)
            self._aged_s = now_s

    async def keep(self) -> None:
        """Until cancelled: hear what others saw, forget what is old."""
        while True:
            self.age(self._wall_us() / 1e6)
            for _ in range(HEARINGS):
                await next_tick(HEAR_S)
                self.hear()

    def statistics(self) -> dict[tuple[Estimator, str], float]:
        """Return, of all keys together; of no key where there is none."""
        rows = list(self._table.ratio.rows())
        keys, mean = self.learned.outputs.known()
        ratio, lengths = Estimator.BYTES_PER_TOKEN, Estimator.OUTPUT_TOKENS
        found = {(ratio, "keys"): float(len(rows)), (lengths, "keys"): float(keys)}
        if rows:
            each = [row.bytes_per_token for row in rows]
            found |= {(ratio, "least"): min(each), (ratio, "median"): median(each)}
            found |= {(ratio, "most"): max(each)}
            found[ratio, "longest_template"] = float(max(row.template_tokens for row in rows))
        if keys:
            found[lengths, "mean"] = mean
        return found | self._of_targets()

    def _of_targets(self) -> dict[tuple[Estimator, str], float]:
        rows = list(self._table.target_output.rows())
        overrun, unseen = Estimator.OUTPUT_OVERRUN, Estimator.UNSEEN_OUTPUT
        beyond = [row.allowance_tokens for row in rows if row.allowance_tokens]
        rates = [row.tokens_per_s for row in rows if row.tokens_per_s is not None]
        found = self._experience.statistics()
        found |= {(overrun, "keys"): float(len(beyond)), (unseen, "keys"): float(len(rates))}
        if beyond:
            found[overrun, "most"] = float(max(beyond))
        if rates:
            found |= {(unseen, "least"): min(rates), (unseen, "most"): max(rates)}
            found[unseen, "hiding"] = float(sum(row.hides for row in rows))
        return found | self._of_prompts() | self._of_caches()

    def _of_caches(self) -> dict[tuple[Estimator, str], float]:
        shares = [row.share for row in self._table.cached_share.rows()]
        cached = Estimator.CACHED_SHARE
        found = {(cached, "keys"): float(len(shares))}
        if shares:
            found |= {(cached, "least"): min(shares), (cached, "most"): max(shares)}
        return found

    def _of_prompts(self) -> dict[tuple[Estimator, str], float]:
        prompt = Estimator.PROMPT_OVERRUN
        overruns = [row.overrun for row in self._table.target_prompts.rows() if any(row.overrun)]
        found = {(prompt, "keys"): float(len(overruns))}
        if overruns:
            found[prompt, "most_pictures"] = max(overrun.pictures for overrun in overruns)
            found[prompt, "most_sounds"] = max(overrun.sounds for overrun in overruns)
            found[prompt, "longest_context"] = float(max(each.context for each in overruns))
        return found


def open_estimates(
    runtime: Runtime,
    worker: int,
    past: Sequence[AnswerLength],
    clock: Clock,
    experience: TargetStats,
) -> HostEstimates:
    """Return a worker's estimates; where it is the only one, it tells nobody of lengths."""
    exchange, workers = None, runtime.layout.workers
    if workers > 1:
        exchange = LengthExchange(runtime.run_dir / LENGTHS_FILE, worker, workers)
    return HostEstimates(runtime.run_dir, past, clock.wall_us, experience, exchange)
