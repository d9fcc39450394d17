"""A file of prices is read whole, or every fault of it names its line and column."""

import pytest

from ledger.csvtable import CsvTableError
from ledger.fleet.gpu_price_file import GpuPriceFileError, parse_gpu_prices

HEAD = "gpu,usd_per_hour,day,source,kind\n"


def test_rows_are_as_they_are_posted() -> None:
    text = HEAD + "H100,1.99,2026-11-02,quote 7,\nL4,0.2,2026-11-02,list,Spot\n"
    assert parse_gpu_prices(text.encode()) == [
        {"gpu": "H100", "usd_per_hour": "1.99", "day": "2026-11-02", "source": "quote 7",
         "kind": "hour"},
        {"gpu": "L4", "usd_per_hour": "0.2", "day": "2026-11-02", "source": "list",
         "kind": "spot"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu,day,source\nH100,2026-11-02,x\n", "the column `usd_per_hour` is missing"),
        (HEAD, "the file has no price"),
        (HEAD + "H100,x,2026-11-02,s,\n", "p.csv: line 2, column `usd_per_hour`: `x` is no"),
        (HEAD + "H100,-1,2026-11-02,s,\n", "`usd_per_hour`: is more than 0"),
        (HEAD + "H100,nan,2026-11-02,s,\n", "`usd_per_hour`"),
        (HEAD + "H100,1,2 Nov,s,\n", "`2 Nov` is not a day"),
        (HEAD + "H100,1,2026-11-02,,\n", "`source`: is empty"),
        (HEAD + "H100,1,2026-11-02,s,owned\n", "`owned` is none: hour, spot"),
    ],
)
def test_faults_name_their_line_and_column(text, said) -> None:
    with pytest.raises((GpuPriceFileError, CsvTableError)) as caught:
        parse_gpu_prices(text.encode(), "p.csv")
    assert said in str(caught.value)
