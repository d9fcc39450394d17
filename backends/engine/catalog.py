"""GPU catalogue: data sheets, measured rates and cloud prices, with source and date.

FLOP/s are dense: most vendors print the sparse figure, which is twice as large. Memory is the data
sheet's. `visible_bytes` is the memory that a process gets: GDDR cards with inline ECC use 1/16 for
check bits, and the driver keeps about 1 % (150,109,880,320 bytes seen by torch on one H200 of 141
GiB, driver 580, 2026-11-20).
"""

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal

Number = Literal["bf16", "fp16", "fp8", "int8"]
_GIB = 1 << 30
_DRIVER_SHARE = 1 - 150_109_880_320 / (141 * _GIB)


@dataclass(frozen=True, slots=True)
class PriceRange:
    """Range of public on-demand list prices per hour of one GPU with its share of the host."""

    low_usd_per_hour: Decimal
    high_usd_per_hour: Decimal
    source: str
    seen: date


@dataclass(frozen=True, slots=True)
class GpuSpec:
    name: str
    vendor: Literal["NVIDIA", "AMD"]
    memory_gib: int
    bandwidth_bytes_s: float
    flops: dict[Number, float]
    interconnect: str
    interconnect_bytes_s: float
    source: str
    flops_note: str = ""  # how `flops` follow from the printed figures
    inline_ecc: bool = False
    nvlink: bool = False
    measured_bandwidth_bytes_s: float | None = None
    measured_flops: dict[Number, float] = field(default_factory=dict)
    measured_source: str = ""
    price: PriceRange | None = None

    @property
    def visible_bytes(self) -> int:
        ecc = 15 / 16 if self.inline_ecc else 1.0
        return int(self.memory_gib * _GIB * ecc * (1 - _DRIVER_SHARE))

    @property
    def best_bandwidth_bytes_s(self) -> float:
        """Return the measured memory bandwidth, or else the data sheet's."""
        return self.measured_bandwidth_bytes_s or self.bandwidth_bytes_s

    def best_flops(self, number: Number) -> float | None:
        """Return the measured FLOP/s, or else the data sheet's. `None`: not supported."""
        return self.measured_flops.get(number) or self.flops.get(number)

    @property
    def bandwidth_basis(self) -> str:
        """Return the source of `best_bandwidth_bytes_s`: measured, or the data sheet."""
        sheet = f"data sheet ({self.source})"
        if self.measured_bandwidth_bytes_s is None:
            return f"{sheet}; not measured here"
        stated = f"{self.bandwidth_bytes_s / 1e12:g} TB/s in the {sheet}"
        return f"measured ({self.measured_source}); {stated}"

    def flops_basis(self, number: Number) -> str:
        """Return the source of `best_flops`: measured, or the data sheet."""
        note = f", {self.flops_note}" if self.flops_note else ""
        sheet = f"data sheet ({self.source}{note})"
        if number not in self.measured_flops:
            return f"{number}, {sheet}; not measured here"
        stated = f"{self.flops[number] / 1e12:g} TFLOP/s in the {sheet}"
        return f"{number}, measured ({self.measured_source}); {stated}"


class UnknownGpu(LookupError):
    """The catalogue has no GPU of this name."""


def find_gpu(name: str) -> GpuSpec:
    """Return a GPU by its catalogue name or by the name that a driver reports.

    Case, blanks and dashes are ignored. A driver's name matches if it has all words of a catalogue
    name: `NVIDIA H100 80GB HBM3` matches `H100`. Of several matches the one with the most words is
    returned. Raises `UnknownGpu` when none matches.
    """
    wanted = _plain(name)
    for gpu in GPUS:
        if _plain(gpu.name) == wanted:
            return gpu
    said = _words_of(name)
    held = [gpu for gpu in GPUS if _words_of(gpu.name) <= said]
    if held:
        return max(held, key=lambda gpu: len(_words_of(gpu.name)))
    near = [gpu.name for gpu in GPUS if wanted and wanted in _plain(gpu.name)]
    names = ", ".join(near or [gpu.name for gpu in GPUS])
    raise UnknownGpu(f"no GPU named {name!r}; there are: {names}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _words_of(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.lower()))


def _hopper(dense_bf16: float, dense_fp8: float) -> dict[Number, float]:
    return {"bf16": dense_bf16, "fp16": dense_bf16, "fp8": dense_fp8, "int8": dense_fp8}


_A100 = "NVIDIA A100 Tensor Core GPU data sheet, 2021-06"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet, 2023"
_SPARSE = "halved: printed with sparsity"
_AMPERE_FLOPS: dict[Number, float] = {"bf16": 312e12, "fp16": 312e12, "int8": 624e12}
_AZURE = "Azure list price, pay-as-you-go, as recorded with arXiv:2606.11690"
_AZURE_SEEN = date(2026, 6, 1)

GPUS: tuple[GpuSpec, ...] = (
    GpuSpec(
        "A100-40GB", "NVIDIA", 40, 1.555e12, _AMPERE_FLOPS, "NVLink 3", 600e9, _A100, nvlink=True
    ),
    GpuSpec(
        "A100-80GB",
        "NVIDIA",
        80,
        2.039e12,
        _AMPERE_FLOPS,
        "NVLink 3",
        600e9,
        _A100,
        nvlink=True,
        price=PriceRange(Decimal("3.67"), Decimal("3.67"), _AZURE, _AZURE_SEEN),
    ),
    GpuSpec(
        "A100-80GB-PCIe",
        "NVIDIA",
        80,
        1.935e12,
        _AMPERE_FLOPS,
        "PCIe 4 x16",
        64e9,
        _A100,
    ),
    GpuSpec(
        "H100",
        "NVIDIA",
        80,
        3.35e12,
        _hopper(989.5e12, 1979e12),
        "NVLink 4",
        900e9,
        _H100,
        _SPARSE,
        nvlink=True,
        price=PriceRange(Decimal("6.98"), Decimal("6.98"), _AZURE, _AZURE_SEEN),
    ),
    GpuSpec(
        "H100-PCIe",
        "NVIDIA",
        80,
        2.0e12,
        _hopper(756e12, 1513e12),
        "PCIe 5 x16",
        128e9,
        _H100,
        _SPARSE,
    ),
    GpuSpec(
        "H100-NVL",
        "NVIDIA",
        94,
        3.9e12,
        _hopper(835.5e12, 1670.5e12),
        "NVLink 4 bridge",
        600e9,
        _H100,
        _SPARSE,
        nvlink=True,
    ),
    GpuSpec(
        "H200",
        "NVIDIA",
        141,
        4.8e12,
        _hopper(989.5e12, 1979e12),
        "NVLink 4",
        900e9,
        "NVIDIA H200 Tensor Core GPU data sheet, 2024",
        _SPARSE,
        nvlink=True,
        measured_bandwidth_bytes_s=4.3e12,
        measured_flops={"bf16": 790e12, "fp16": 790e12},
        measured_source="copy and matrix product on one H200, torch 2.11, 2026-11-20",
    ),
    GpuSpec(
        "B200",
        "NVIDIA",
        180,
        8.0e12,
        _hopper(2.25e15, 4.5e15),
        "NVLink 5",
        1.8e12,
        "NVIDIA DGX B200 data sheet, 2024 (an eighth)",
        _SPARSE,
        nvlink=True,
    ),
    GpuSpec(
        "L40S",
        "NVIDIA",
        48,
        864e9,
        _hopper(362.05e12, 733e12),
        "PCIe 4 x16",
        64e9,
        "NVIDIA L40S data sheet, 2023",
        inline_ecc=True,
    ),
    GpuSpec(
        "L4",
        "NVIDIA",
        24,
        300e9,
        _hopper(121e12, 242.5e12),
        "PCIe 4 x16",
        64e9,
        "NVIDIA L4 data sheet, 2023",
        _SPARSE,
        inline_ecc=True,
    ),
    GpuSpec(
        "A10G",
        "NVIDIA",
        24,
        600e9,
        {"bf16": 70e12, "fp16": 70e12, "int8": 140e12},
        "PCIe 4 x16",
        64e9,
        "NVIDIA A10G data sheet for AWS, 2022-02",
        inline_ecc=True,
        price=PriceRange(
            Decimal("1.006"),
            Decimal("1.006"),
            "AWS g5.xlarge, Linux, on demand, us-east-1",
            date(2026, 6, 17),
        ),
    ),
    GpuSpec(
        "T4",
        "NVIDIA",
        16,
        320e9,
        {"fp16": 65e12, "int8": 130e12},
        "PCIe 3 x16",
        32e9,
        "NVIDIA T4 data sheet, 2019",
        inline_ecc=True,
    ),
    GpuSpec(
        "RTX-4090",
        "NVIDIA",
        24,
        1.008e12,
        _hopper(165.2e12, 330.3e12),
        "PCIe 4 x16",
        64e9,
        "NVIDIA Ada GPU architecture whitepaper 2.01, 2022",
        "FP32 accumulation",
    ),
    GpuSpec(
        "MI300X",
        "AMD",
        192,
        5.3e12,
        _hopper(1307.4e12, 2614.9e12),
        "Infinity Fabric",
        896e9,
        "AMD Instinct MI300X data sheet, 2023-12",
        nvlink=True,
    ),
)
