"""What the gateway tells the books of GPUs is the catalogue, and stays readable."""

from backends.engine.catalog import GPUS, find_gpu
from gateway.host.gpu_catalog import hardware


def test_every_gpu_with_its_price_and_figures() -> None:
    told = {named.name: named for named in hardware()}
    assert list(told) == [gpu.name for gpu in GPUS]
    assert told["H100"].low_pusd_per_hour == 6_980_000_000_000
    assert told["H100"].price_seen == find_gpu("H100").price.seen
    assert told["L4"].low_pusd_per_hour is None, "no price was seen: not 0"
    assert {named.model for named in told["H200"].serving} == {
        "Llama-2-70B, FP8",
        "Llama-3.1-8B, FP8",
    }
