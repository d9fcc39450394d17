"""Replay of a recorded decision from the ledger, compared with the record.

The running host is not used: request, policy and candidates come exact from the record, and
`router.decide` is pure. The packed records are compared byte by byte.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.request.stage_turns import DECISION_LIMIT_BYTES
from router.decide import decide
from router.explain import as_dict, pack_bounded
from router.packed import stage_of
from router.snapshot_codec import Inputs, decode
from router.types import Decision


@dataclass(frozen=True, slots=True)
class DecisionReplay:
    """Stored `inputs`, the decision made from them, and whether it equals the record."""

    inputs: Inputs
    decision: Decision
    identical: bool

    def document(self) -> dict[str, Any]:
        request, policy, candidates = self.inputs
        return {
            "identical": self.identical,
            # Sorted sets, so that every process returns the same document.
            "request": msgspec.to_builtins(request, order="deterministic"),
            "policy": msgspec.to_builtins(policy, order="deterministic"),
            "candidates": msgspec.to_builtins(candidates, order="deterministic"),
            "decision": as_dict(self.decision),
        }

    def lines(self) -> list[str]:
        """Return lines with the inputs of the numbers, and whether they were reproduced."""
        _, policy, candidates = self.inputs
        slo = policy.slo
        promised = f"ttft {_ms(slo.ttft_ms)}, tpot {_ms(slo.tpot_ms)}"
        penalty = f"penalty ${policy.penalty_pusd / 1e12:.6f}"
        found = [f"policy {policy.name}: {promised}, attainment {slo.attainment:g}, {penalty}"]
        for candidate in candidates:
            engine = candidate.engine
            if engine is None:
                expected = candidate.expected_pusd
                price = "unpriced" if expected is None else f"${expected / 1e12:.6f} expected"
                seen = 0 if candidate.api is None else candidate.api.observations
                found.append(f"{candidate.name}: {price}, latencies from {seen} answers")
                continue
            found.append(
                f"{candidate.name}: {engine.health.value}, {engine.sequences} sequences,"
                f" bid price ${3600 * candidate.bid_price_pusd_per_s / 1e12:.4f}/h,"
                f" step factor {engine.step_feedback:.3f},"
                f" safety ttft {engine.safety_ttft:.3f} tpot {engine.safety_tpot:.3f},"
                f" age {engine.age_s:.3f} s"
            )
        same = "the same, byte by byte" if self.identical else "ANOTHER DECISION"
        chosen = self.decision.first_choice
        name = "nobody" if chosen is None else chosen.candidate.name
        return [*found, f"decided again: {name} ({self.decision.reason.value}), {same}"]


def replay_decision(inputs: bytes, recorded: bytes) -> DecisionReplay:
    """Repeat a decision. Raises `ValueError` for inputs of another format version."""
    try:
        request, policy, candidates = decode(msgspec.msgpack.decode(inputs, strict=False))
    except (TypeError, msgspec.DecodeError) as error:
        raise ValueError(f"the frozen inputs cannot be read: {error}") from error
    decision = decide(request, policy, candidates)
    asked = request, policy, decision
    stage = stage_of(msgspec.msgpack.decode(recorded))  # the stage is not an input of `decide`
    packed = pack_bounded(DECISION_LIMIT_BYTES, msgspec.msgpack.encode, asked, stage)
    return DecisionReplay((request, policy, candidates), decision, packed == recorded)


def _ms(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:g} ms"
