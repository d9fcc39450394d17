"""Keeps what a worker learns: opened at its start, reset by operators, told to `/metrics`."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from gateway.control.estimate_resets import resets_of
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable
from gateway.request.plan import LearnedEstimates
from ledger.lengths import AnswerLength
from ledger.overrides import Override
from router.estimates import OutputLengths
from router.estimator_rules import Estimator

SWEEP_S = 60.0  # from one look at the age of estimates to the next


class HostEstimates:
    """`learned` is what requests use: the host's table, and lengths of the worker's own."""

    def __init__(
        self, run_dir: Path, past: Sequence[AnswerLength], wall_us: Callable[[], int]
    ) -> None:
        self._table = EstimateTable(run_dir / ESTIMATES_FILE)
        self._past = past
        self._wall_us = wall_us
        self._reset = 0
        self.learned = LearnedEstimates(self._table.ratio, known_lengths(past))

    def close(self) -> None:
        self._table.close()

    def reset(self, overrides: Sequence[Override]) -> None:
        """Carry out the new resets among them; on the table once, by the worker that is first.

        Lengths were read at the start, those of answers before a reset among them. Answers since
        then are learned again.
        """
        for reset in resets_of(overrides, self._table.reset):
            self._table.ratio.forget(reset.model, reset.team)
            self._table.reset_to(reset.number)
        for reset in resets_of(overrides, self._reset):
            self.learned.outputs.forget(reset.model, reset.team)
            since = [length for length in self._past if reset.covers(length.model, length.team_id)]
            teach(self.learned.outputs, [past for past in since if past.opened_us >= reset.at_us])
            self._reset = reset.number

    async def keep(self) -> None:
        """Until cancelled: forget what is old."""
        while True:
            self._table.sweep(self._wall_us() / 1e6)
            await asyncio.sleep(SWEEP_S)

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
        return found


def known_lengths(past: Iterable[AnswerLength]) -> OutputLengths:
    """Return the lengths of past answers: who starts need not promise each request the most."""
    lengths = OutputLengths()
    teach(lengths, past)
    return lengths


def teach(lengths: OutputLengths, past: Iterable[AnswerLength]) -> None:
    for length in past:
        key = (length.model, length.team_id)
        lengths.observe(key, length.prompt_tokens, length.output_tokens, cut=length.cut)
