"""The cells of the routing bench: a load, engines, comparators, and what must be reached there.

`1x` is the rate of Poisson arrivals of these lengths at which all-own keeps 99 % of its promises
(`bench_routing.py --capacity`). Musts and aims are shares of the clairvoyant bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from api_price import ApiPrice
from traces import Load

from backends.simulator.profiles import PROFILES
from backends.simulator.shape import EngineShape
from router.types import Slo

MINI, CHEAP, DEAR = (
    ApiPrice(150_000, 600_000),
    ApiPrice(50_000, 100_000),
    ApiPrice(2_500_000, 10_000_000),
)
TTFT_S, TPOT_S, ATTAINMENT = 0.5, 0.05, 0.99
SLO = Slo(ttft_ms=1000.0 * TTFT_S, tpot_ms=1000.0 * TPOT_S, attainment=ATTAINMENT)
SECONDS, MOST = 600.0, 20_000
H100 = PROFILES["h100-llama-3.1-8b-fp8"].shape
# Its linear step alone: the bound's program is linear, and has to be a bound.
H200 = replace(PROFILES["h200-llama-3.1-8b-fp8"].shape, pace=None)
KV_TIGHT = replace(H100, blocks=3751)  # 60,000 tokens

# kind -> load -> (must, aim)
BARS = {
    "smooth": {0.5: (0.98, 0.995), 1: (0.92, 0.97), 2: (0.87, 0.94), 4: (0.83, 0.90)},
    "tight": {0.5: (0.98, 0.995), 1: (0.92, 0.97), 2: (0.86, 0.90), 4: (0.83, 0.90)},
    "code": {0.5: (0.85, 0.90), 1: (0.85, 0.92), 2: (0.82, 0.88), 4: (0.78, 0.85)},
    "mix": {0.5: (0.90, 0.96), 1: (0.85, 0.92), 2: (0.87, 0.94), 4: (0.83, 0.90)},
    "two": {0.5: (0.98, 0.995), 1: (0.92, 0.97), 2: (0.88, 0.96), 4: (0.86, 0.96)},
    "two mix": {0.5: (0.90, 0.96), 1: (0.85, 0.92), 2: (0.88, 0.96), 4: (0.86, 0.96)},
    "dear bursts": {0.5: (0.90, 0.96), 1: (0.85, 0.92), 2: (0.74, 0.84), 4: (0.72, 0.80)},
}
GREEDY_LEAST = 0.98  # of greedy's score, everywhere
GREEDY_TWO = {2: 1.2, 4: 1.6}  # and of two prices on conv
# kind -> load -> of the best threshold in hindsight that keeps its promises, one engine
THRESHOLD_LEAST = {
    "tight": {2: 1.0},
    "code": {1: 1.5, 2: 1.5, 4: 1.5},
    **{kind: {2: 1.35, 4: 1.5} for kind in ("two", "two mix", "dear bursts")},
}
THRESHOLD_CONV = {2: 1.1}  # one price


@dataclass(frozen=True)
class Cell:
    """`window_s`: of the bound's decoding; its prefill lies in windows of a quarter second."""

    name: str
    kind: str
    times: float
    load: Load
    prices: dict[str, ApiPrice]
    shape: EngineShape
    engines: int
    window_s: float
    slo: Slo = SLO

    @property
    def bars(self) -> tuple[float, float]:
        return BARS[self.kind][self.times]

    @property
    def least_to_greedy(self) -> float:
        two_on_conv = self.kind == "two" and self.name.startswith("conv2_") and self.engines == 1
        return GREEDY_TWO.get(int(self.times), GREEDY_LEAST) if two_on_conv else GREEDY_LEAST

    @property
    def least_to_threshold(self) -> float | None:
        """`None`: nothing must be reached."""
        if self.engines > 1:
            return None
        conv = self.kind == "smooth" and self.name.startswith("conv_")
        least = THRESHOLD_CONV if conv else THRESHOLD_LEAST.get(self.kind, {})
        return least.get(int(self.times)) if self.times >= 1 else None


@dataclass(frozen=True)
class Family:
    """Cells that differ in load alone; `traces` as a `Load` has them."""

    name: str
    kind: str
    traces: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    prices: dict[str, ApiPrice]
    shape: EngineShape
    capacity_rps: float
    times: tuple[float, ...] = (0.5, 1, 2, 4)
    window_s: float = 4.0
    engines: int = 1

    def cells(self, most: int) -> Iterator[Cell]:
        for times in self.times:
            rate = times * self.capacity_rps * self.engines
            load = Load(self.traces, rate, SECONDS, most)
            yield Cell(
                f"{self.name}_{times:g}x", self.kind, times, load, self.prices, self.shape,
                self.engines, self.window_s,
            )  # fmt: skip


def _budget(shape: EngineShape, tokens: int) -> EngineShape:
    return replace(shape, prefill_budget_tokens=tokens)


def _one(trace: str) -> tuple[tuple[str, tuple[tuple[str, float], ...]], ...]:
    return ((trace, (("a", 1.0),)),)


MIXED = (("conv", (("a", 1.0),)), ("code", (("b", 1.0),)))
CONV_CODE, SPLIT_30, SPLIT_10 = (
    MIXED,
    (("conv", (("a", 0.3), ("b", 0.7))),),
    (("conv", (("a", 0.1), ("b", 0.9))),),
)
H100_CODE, H200_CONV, H200_CODE = _budget(H100, 1024), _budget(H200, 2048), _budget(H200, 1024)
LOADED = (1, 2, 4)

FAMILIES = (
    Family("conv_mini", "smooth", _one("conv"), {"a": MINI}, H100, 14.1),
    Family("code_mini", "code", _one("code"), {"a": MINI}, H100_CODE, 6.0, window_s=0.25),
    Family("conv2_mini30_cheap70", "two", SPLIT_30, {"a": MINI, "b": CHEAP}, H100, 14.1),
    Family("mix_cheap_mini", "dear bursts", MIXED, {"a": CHEAP, "b": MINI}, H100_CODE, 10.5,
           window_s=2.0),
    Family("kv60_mini", "tight", _one("conv"), {"a": MINI}, KV_TIGHT, 10.5),
    Family("mix_mini", "mix", MIXED, {"a": MINI, "b": MINI}, H100_CODE, 10.5, window_s=2.0),
    Family("mix_dear_cheap", "two mix", MIXED, {"a": DEAR, "b": CHEAP}, H100_CODE, 10.5,
           window_s=2.0),
    Family("conv2_dear10_mini90", "two", SPLIT_10, {"a": DEAR, "b": MINI}, H100, 14.1),
    Family("h200_conv_mini", "smooth", _one("conv"), {"a": MINI}, H200_CONV, 19.0, LOADED),
    Family("h200_code_mini", "code", _one("code"), {"a": MINI}, H200_CODE, 7.9, LOADED,
           window_s=0.25),
    Family("msmall_mini", "smooth", _one("msmall"), {"a": MINI}, H100_CODE, 37.0, (1, 2),
           window_s=1.0),
    Family("msmall2_mini30_cheap70", "two", (("msmall", (("a", 0.3), ("b", 0.7))),),
           {"a": MINI, "b": CHEAP}, H100_CODE, 37.0, (1, 2), window_s=1.0),
    Family("r1_mini", "smooth", _one("r1"), {"a": MINI}, H100, 2.5, (1, 2), window_s=8.0),
    Family("conv_mini_e4", "smooth", _one("conv"), {"a": MINI}, H100, 14.1, (1, 2), engines=4),
    Family("code_mini_e4", "code", _one("code"), {"a": MINI}, H100_CODE, 6.0, (1,),
           window_s=0.25, engines=4),
    Family("conv2_mini30_cheap70_e16", "two", SPLIT_30, {"a": MINI, "b": CHEAP}, H100, 14.1, (1,),
           engines=16),
)  # fmt: skip
QUICK = (
    "conv_mini_1x", "conv_mini_2x", "code_mini_2x", "conv2_mini30_cheap70_2x", "mix_cheap_mini_2x",
    "kv60_mini_2x",
)  # fmt: skip
ROBUST = ("conv_mini_2x", "conv2_mini30_cheap70_2x", "code_mini_2x")  # tried with errors, too


def cells(most: int = MOST) -> list[Cell]:
    return [cell for family in FAMILIES for cell in family.cells(most)]
