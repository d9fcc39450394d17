"""Reader of answers from OpenAI's `GET /v1/organization/costs`.

Answers may be grouped by line item and project. The text is one page, a JSON list of pages, or one
page per line.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from ledger.invoices.formats.cell_reader import CellReader
from ledger.invoices.formats.invoice_line import InvoiceLine

DAY_S = 86_400
_LAST_S = 2**40  # larger numbers are not times


class _NamedTwiceError(ValueError):
    """A JSON object with two members of one name, of which one would be ignored."""


def read_openai_costs(reader: CellReader, text: str) -> Iterator[InvoiceLine]:
    """Yield the lines of all pages. Faults go to the reader."""
    page: Any = None
    starts: list[int] = []
    for number, page in enumerate(_pages(reader, text), 1):
        where = f"page {number}"
        if not isinstance(page, dict) or not isinstance(page.get("data"), list):
            reader.faults.append(f"{where}: no answer of /v1/organization/costs (no `data` list)")
            return
        for bucket in page["data"]:
            yield from _bucket(reader, where, bucket, starts)
    if isinstance(page, dict) and page.get("has_more"):
        following = page.get("next_page")
        name = following[:60] if isinstance(following, str) else "the next one"
        reader.faults.append(f"it is not whole: ask for page={name}, too")
    for before, after in pairwise(sorted(starts)):
        if after - before != DAY_S:
            day = datetime.fromtimestamp(before, UTC).date()
            what = "stands twice" if after == before else "is not followed by the next day"
            reader.faults.append(f"{day} {what}: give every page once")


def _pages(reader: CellReader, text: str) -> Iterator[Any]:
    try:
        document = _load(text)
    except RecursionError:
        reader.faults.append("line 1: nested too deeply")
        return
    except _NamedTwiceError as error:
        reader.faults.append(str(error))
        return
    except ValueError:
        yield from _pages_by_line(reader, text)
        return
    yield from document if isinstance(document, list) else (document,)


def _pages_by_line(reader: CellReader, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            page = _load(line)
        except RecursionError:
            reader.faults.append(f"line {number}: nested too deeply")
        except _NamedTwiceError as error:
            reader.faults.append(f"line {number}: {error}")
        except ValueError:
            reader.faults.append(f"line {number}: no JSON")
        else:
            yield page


def _load(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, object_pairs_hook=_named_once)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NamedTwiceError(f"an object has `{twice[:60]}` twice")
    return members


def _bucket(
    reader: CellReader, where: str, bucket: Any, starts: list[int]
) -> Iterator[InvoiceLine]:
    try:
        start_s, results = _seconds(bucket["start_time"]), list(bucket["results"])
        end = bucket.get("end_time")
        end_s = _seconds(end) if end else start_s + DAY_S
        day = datetime.fromtimestamp(start_s, UTC).date()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        reader.faults.append(f"{where}: a bucket has no `start_time` or no `results`")
        return
    if start_s % DAY_S or end_s - start_s != DAY_S:
        reader.faults.append(f"{where}: a bucket that is not a UTC day; ask for bucket_width=1d")
        return
    starts.append(start_s)
    for result in results:
        amount = result.get("amount") if isinstance(result, dict) else None
        if not isinstance(amount, dict):
            reader.faults.append(f"{where}: a result of {day} has no `amount`")
            continue
        place = f"{where}, {day}"
        pusd = reader.read_amount(amount.get("value"), place, (amount.get("currency"),))
        quantity = reader.read_quantity(result.get("quantity"), place)
        item, project, unit = (
            reader.read_text(result.get(name), place)
            for name in ("line_item", "project_id", "quantity_unit")
        )
        if pusd is not None:
            yield InvoiceLine(day, item or "", pusd, project, quantity, unit)


def _seconds(value: Any) -> int:
    """Return a time in seconds since the epoch. Raises `TypeError` or `ValueError`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 13:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError("no time")
    # Checked before any calculation: a short text may be a number that fills the memory.
    if not -_LAST_S <= value <= _LAST_S or value != int(value):
        raise ValueError("no whole second of a calendar")
    return int(value)
