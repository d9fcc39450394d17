"""GPUs to buy or rent, from the gateway's catalogue. Also filled without own GPUs."""

from datetime import date

from sqlalchemy import BigInteger

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json


class GpuTypeRow(LedgerBase):
    """One kind of GPU. Public prices are per hour, null if none was found, never 0.

    `serving` has one document per measurement (`market.MeasuredThroughput`).
    """

    __tablename__ = "gpu_types"

    name: Stored[str] = define_column(primary_key=True)
    place: Stored[int]  # position in the catalogue
    vendor: Stored[str]
    memory_gib: Stored[int]
    bandwidth_bytes_s: Stored[int] = define_column(BigInteger)
    low_pusd_per_hour: Stored[int | None] = define_column(BigInteger)
    high_pusd_per_hour: Stored[int | None] = define_column(BigInteger)
    price_source: Stored[str | None]
    price_seen: Stored[date | None]
    serving: Stored[list[dict[str, object]]] = define_column(Json)
    source: Stored[str]
    recorded_us: Stored[int] = define_column(BigInteger)
