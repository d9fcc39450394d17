"""What hardware there is to buy or rent, as the gateway's catalogue has it: for who owns none."""

from datetime import date

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase


class GpuTypeRow(LedgerBase):
    """One kind of GPU; public prices are per hour, `None` where none was seen: never 0.

    `serving`: what was measured on it (`market.Serving`), one document each.
    """

    __tablename__ = "gpu_types"

    name: Mapped[str] = mapped_column(primary_key=True)
    place: Mapped[int]  # in the catalogue's order
    vendor: Mapped[str]
    memory_gib: Mapped[int]
    bandwidth_bytes_s: Mapped[int] = mapped_column(BigInteger)
    low_pusd_per_hour: Mapped[int | None] = mapped_column(BigInteger)
    high_pusd_per_hour: Mapped[int | None] = mapped_column(BigInteger)
    price_source: Mapped[str | None]
    price_seen: Mapped[date | None]
    serving: Mapped[list[dict[str, object]]] = mapped_column(Json)
    source: Mapped[str]
    recorded_us: Mapped[int] = mapped_column(BigInteger)
