"""Learned estimates of a worker: opened at start, reset by operators, shown in `/metrics`."""

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

HEARINGS = 60  # exchanges between two agings


class HostEstimates:
    """Learned estimates of a host, as used by one worker.

    `learned` is used by requests: the host's table, and lengths exchanged between workers.
    """

    def __init__(
        self,
        run_dir: Path,
        past: Sequence[AnswerLength],
        wall_us: Callable[[], int],
        experience: TargetStats,
        exchange: LengthExchange | None = None,
    ) -> None:
        """`exchange` shares answer lengths between the workers of the host."""
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
        """Learn the answer lengths that the host's other workers observed."""
        if self.learned.exchange is not None:
            for length in self.learned.exchange.hear():
                key, prompt_tokens, output_tokens, cut = length
                self.learned.outputs.observe(key, prompt_tokens, output_tokens, cut=cut)

    def reset(self, overrides: Sequence[Override]) -> None:
        """Apply new resets; the first worker applies them to the host's table.

        Lengths read at the start are learned again, except those of answers before the reset.
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
            self.hear()  # lengths exchanged before the reset are forgotten, too
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
        """Age all estimators; `now_s` is wall clock."""
        self._table.sweep(now_s)
        self.learned.outputs.age(now_s)
        if not 0.0 <= now_s - self._aged_s < AGING_S:
            self._experience.age(now_s - self._aged_s)
            self._aged_s = now_s

    async def keep(self) -> None:
        """Exchange lengths and age the estimates until cancelled."""
        while True:
            self.age(self._wall_us() / 1e6)
            for _ in range(HEARINGS):
                await next_tick(HEAR_S)
                self.hear()

    def statistics(self) -> dict[tuple[Estimator, str], float]:
        """Return statistics over all keys of each estimator; only the count if there are none."""
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
    """Return a worker's estimates; a single worker exchanges no lengths."""
    exchange, workers = None, runtime.layout.workers
    if workers > 1:
        exchange = LengthExchange(runtime.run_dir / LENGTHS_FILE, worker, workers)
    return HostEstimates(runtime.run_dir, past, clock.wall_us, experience, exchange)
