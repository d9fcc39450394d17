"""Estimates of prompts and answers by model and team, learned in virtual time."""

from gateway.whatif.replay_caches import BYTES_PER_TOKEN
from gateway.whatif.traffic import Arrival
from ledger.queries.traffic import RecordedLength
from router.estimate_rows import RowKey
from router.estimates import OutputLengths
from router.token_ratio import TokenRatio
from router.types import OutputMoments


class ReplayEstimates:
    """Output lengths and shortfall of prompt estimates; empty at first."""

    def __init__(self) -> None:
        self._lengths = OutputLengths()
        self._ratio = TokenRatio()

    def recall(self, model: str, past: RecordedLength) -> None:
        """Add an answer from before the replay."""
        key = (model, past.team)
        self._lengths.observe(key, past.input_tokens, past.output_tokens, cut=past.cut)

    def moments(self, key: RowKey, prompt_tokens: int) -> OutputMoments:
        """Return the moments of the output length after such a prompt, in tokens."""
        return self._lengths.moments(key, prompt_tokens)

    def margin(self, key: RowKey) -> float:
        """Return the factor by which a prompt may exceed its estimate."""
        return self._ratio.margin(key)

    def observe(self, key: RowKey, arrival: Arrival, now_s: float, *, cut: bool) -> None:
        """Add an answer that ended."""
        prompt = arrival.prompt_tokens
        self._lengths.observe(key, prompt, arrival.output_tokens, cut=cut)
        self._ratio.observe(key, BYTES_PER_TOKEN * (arrival.estimate or prompt), prompt, now_s)
