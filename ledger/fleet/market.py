"""The GPU catalogue in the database, written at a gateway's start and read for purchases.

`estimate` returns the rate of one GPU inside the promise of a measurement. For a GPU without a
measurement, it scales the nearest measured one by memory bandwidth, which limits decoding, and
marks the result. A model that does not fit on one GPU has no estimate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from fractions import Fraction

from sqlalchemy import Connection, Engine, delete, insert, select

from ledger.economics.cost import TokenBasis, Volume, on_all_tokens
from ledger.orm.market import GpuTypeRow

ROOM = Fraction(9, 10)  # of a GPU's memory, for weights and cache
CACHE = Fraction(5, 4)  # weights, and the minimum cache for useful batches


@dataclass(frozen=True, slots=True)
class MeasuredThroughput:
    """A measured load inside a promise: tokens per second of `gpus` GPUs together."""

    model: str
    weights_gib: float
    gpus: int
    output_tokens_per_s: float
    input_per_output: float
    ttft_ms_p99: float
    tpot_ms_p90: float
    source: str


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """One kind of GPU. Rates are per GPU-hour; `None` if no public price was found.

    `low_source` is not stored: source and day of the lowest rate, if the range has two sources.
    """

    name: str
    vendor: str
    memory_gib: int
    bandwidth_bytes_s: int
    low_pusd_per_hour: int | None
    high_pusd_per_hour: int | None
    price_source: str | None
    price_seen: date | None
    serving: tuple[MeasuredThroughput, ...]
    source: str
    low_source: tuple[str, date | None] | None = None

    @property
    def lowest_source(self) -> tuple[str, date | None] | None:
        """Return source and day of the lowest rate."""
        if self.low_source is not None or self.price_source is None:
            return self.low_source
        return self.price_source, self.price_seen


@dataclass(frozen=True, slots=True)
class ThroughputEstimate:
    """Output tokens per second of one GPU, and the measurement behind the figure."""

    output_tokens_per_s: Fraction
    measured: MeasuredThroughput
    on: str  # the GPU that was measured
    scaled: Fraction  # factor on the measurement; 1 for the measured GPU itself

    def tokens_per_s(self, basis: TokenBasis) -> Fraction:
        """Return tokens per second on a basis, at the measurement's mix of input and output."""
        output = Volume(self.output_tokens_per_s, TokenBasis.OUTPUT)
        if basis is TokenBasis.OUTPUT:
            return Fraction(output.tokens)
        mix = Fraction(str(self.measured.input_per_output))
        return Fraction(on_all_tokens(output, input_per_output=mix).tokens)


def record_market(engine: Engine, found: Iterable[GpuOffer], *, at_us: int) -> bool:
    """Store this catalogue. Return whether anything changed."""
    wanted = tuple(found)
    names = _stored_names()
    with engine.begin() as connection:
        if market(connection) == wanted:
            return False
        connection.execute(delete(GpuTypeRow))
        stored = ({name: asdict(offer)[name] for name in names} for offer in wanted)
        rows = [{**values, "place": place, "recorded_us": at_us}
                for place, values in enumerate(stored)]  # fmt: skip
        if rows:
            connection.execute(insert(GpuTypeRow), rows)
    return True


def market(connection: Connection) -> tuple[GpuOffer, ...]:
    """Return the catalogue in order; empty before a gateway of this version has started."""
    names = _stored_names()
    query = select(*(getattr(GpuTypeRow, name) for name in names)).order_by(GpuTypeRow.place)
    found = []
    for row in connection.execute(query):
        values = dict(zip(names, row, strict=True))
        values["serving"] = tuple(MeasuredThroughput(**item) for item in values["serving"])
        found.append(GpuOffer(**values))
    return tuple(found)


def _stored_names() -> list[str]:
    return [field.name for field in fields(GpuOffer) if field.name != "low_source"]


def models(known: Iterable[GpuOffer]) -> list[str]:
    """Return every model that was measured on some GPU, sorted."""
    return sorted({throughput.model for gpu in known for throughput in gpu.serving})


def estimate(known: Sequence[GpuOffer], gpu: GpuOffer, model: str) -> ThroughputEstimate | None:
    """Return one GPU's rate for a model; `None` if the model does not fit or was not measured."""
    own = [throughput for throughput in gpu.serving if throughput.model == model]
    if own:
        best = max(own, key=lambda throughput: throughput.output_tokens_per_s / throughput.gpus)
        return ThroughputEstimate(_tokens_per_gpu(best), best, gpu.name, Fraction(1))
    others = [
        (other, throughput)
        for other in known
        for throughput in other.serving
        if throughput.model == model
    ]
    if not others:
        return None
    other, throughput = min(others, key=lambda pair: abs(_ratio(gpu, pair[0]) - 1))
    if Fraction(str(throughput.weights_gib)) * CACHE > gpu.memory_gib * ROOM:
        return None
    scale = _ratio(gpu, other)
    return ThroughputEstimate(_tokens_per_gpu(throughput) * scale, throughput, other.name, scale)


def _ratio(gpu: GpuOffer, other: GpuOffer) -> Fraction:
    return Fraction(gpu.bandwidth_bytes_s, other.bandwidth_bytes_s)


def _tokens_per_gpu(measured_throughput: MeasuredThroughput) -> Fraction:
    return Fraction(str(measured_throughput.output_tokens_per_s)) / measured_throughput.gpus
