"""The GPU catalog in the form of the ledger, for display on the dashboard."""

from collections.abc import Iterator
from decimal import Decimal

from backends.engine.catalog import GPUS
from backends.engine.serving import SERVED
from ledger.fleet.market import GpuOffer, MeasuredThroughput
from ledger.money import usd_to_pusd


def hardware() -> Iterator[GpuOffer]:
    """Yield every GPU of the catalog with its public price and measured throughput."""
    for gpu in GPUS:
        price = gpu.price
        yield GpuOffer(
            name=gpu.name,
            vendor=gpu.vendor,
            memory_gib=gpu.memory_gib,
            bandwidth_bytes_s=int(gpu.best_bandwidth_bytes_s),
            low_pusd_per_hour=_pusd(None if price is None else price.low_usd_per_hour),
            high_pusd_per_hour=_pusd(None if price is None else price.high_usd_per_hour),
            price_source=None if price is None else price.source,
            price_seen=None if price is None else price.seen,
            serving=tuple(
                MeasuredThroughput(
                    model=figure.model,
                    weights_gib=figure.weights_gib,
                    gpus=figure.gpus,
                    output_tokens_per_s=figure.output_tokens_per_s,
                    input_per_output=figure.input_per_output,
                    ttft_ms_p99=figure.ttft_ms_p99,
                    tpot_ms_p90=figure.tpot_ms_p90,
                    source=figure.source,
                )
                for figure in SERVED
                if figure.gpu == gpu.name
            ),
            source=gpu.source,
        )


def _pusd(usd: Decimal | None) -> int | None:
    return None if usd is None else usd_to_pusd(usd)
