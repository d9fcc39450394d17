"""Commands `breakeven rates gpus` and `rates reserve`: offers with their source."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gateway.cli.admin_backend import By, Why, run_change
from gateway.cli.config import Config
from gateway.cli.output import AsJson, fail, print_result
from gateway.control.admin import offers as verbs
from ledger.csvtable import CsvTableError
from ledger.fleet.gpu_price_file import GpuPriceFileError, parse_gpu_prices


def gpus(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV with the columns gpu,usd_per_hour,day,source and optionally kind."
        ),
    ],
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Import prices of catalogue GPUs from a file, all or none."""
    try:
        rows = parse_gpu_prices(file.read_bytes(), file.name)
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except (GpuPriceFileError, CsvTableError) as error:
        fail(str(error))
    given = verbs.EnterGpuPricesInput(
        msgspec.convert(rows, list[verbs.GpuPriceInput], strict=False), note
    )
    said = run_change(config, by, verbs.gpu_prices_enter, given)
    print_result(said, f"Entered: {len(rows)} prices of GPUs.", as_json=as_json)


def reserve(
    target: Annotated[str, typer.Argument(help="PROVIDER/MODEL that the units serve.")],
    tokens_per_minute: Annotated[
        int, typer.Option(min=1, help="Tokens a minute of one unit, input and output.")
    ],
    usd_per_hour: Annotated[str, typer.Option(help="Price of one unit for an hour, in USD.")],
    day: Annotated[str, typer.Option(help="Day of the price, YYYY-MM-DD.")],
    source: Annotated[str, typer.Option(help="Source of the price: a quote or a price list.")],
    least_units: Annotated[int, typer.Option(min=1, help="Minimum number of units.")] = 1,
    step: Annotated[
        int, typer.Option(min=1, help="Units are sold in multiples of this number.")
    ] = 1,
    term: Annotated[str, typer.Option(help="Period of the price: hour, month or year.")] = "month",
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enter reserved API capacity, as an option for the verdict."""
    document = {
        "target": target, "tokens_per_minute": tokens_per_minute, "usd_per_hour": usd_per_hour,
        "day": day, "source": source, "least_units": least_units, "step": step, "term": term,
        "note": note,
    }  # fmt: skip
    try:
        given = msgspec.convert(document, verbs.EnterReservedInput, strict=False)
    except msgspec.ValidationError as error:
        fail(str(error))
    said = run_change(config, by, verbs.reserved_enter, given)
    print_result(said, f"Entered for {target}: the next verdict weighs it.", as_json=as_json)
