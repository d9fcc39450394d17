"""Sources of `breakeven prices`: LiteLLM's map, `genai-prices`, or a file."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path, PurePath

from gateway.control.pricing.configured import actor
from ledger.prices import bundled as pricebook
from ledger.prices import genaimap
from ledger.prices.book import Price, PriceBook, PriceError
from ledger.prices.bundled import PriceRemark, bundled_seed, seed_from_map
from ledger.prices.drafts import APPROVED_RANK, BUNDLED_RANK, PriceDraft
from ledger.prices.files import parse_price_file
from ledger.prices.negotiated import parse_price_csv
from ledger.prices.stored import ImportStamp

LITELLM, GENAI = "litellm", "genai-prices"
KINDS = (".csv", ".yaml", ".yml", ".json")
GENAI_INSTALL = (
    "`genai-prices` is not installed here: `uv pip install --require-hashes "
    "-r deploy/prices/requirements.lock`, or `pip install 'breakeven[prices]'`"
)


@dataclass(frozen=True, slots=True)
class PriceSource:
    """Prices of a source, as `book`; `refused` are rows that cannot be used."""

    book: str
    drafts: tuple[PriceDraft, ...]
    stamp: ImportStamp
    refused: tuple[PriceRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceText:
    """A price file: its name without a folder, its bytes, and its date."""

    name: str
    data: bytes
    read_on: str | None = None


def read_text(name: str) -> PriceText | None:
    """Return the file that `--from` names; `None` for another source. Raises `PriceError`."""
    if name in (LITELLM, GENAI):
        return None
    path = Path(name)
    if path.suffix.lower() not in KINDS:
        raise PriceError(
            f"unknown price source --from {name}: name `{LITELLM}`, `{GENAI}`, or a file "
            "that ends in .csv, .yaml or .json"
        )
    data = _read(path)
    day = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC).date().isoformat()
    return PriceText(path.name, data, day)


def source_of(
    given: str | PriceText,
    book: str | None,
    configured: Sequence[str],
    stored: Sequence[Price],
    at_us: int,
) -> PriceSource:
    """Read prices of a source or a file. `configured` lists the configured price files.

    Nothing is read from a path here. Raises `PriceError` with every fault, one a line.
    """
    if given == LITELLM:
        stamp = ImportStamp(actor(), f"litellm {version('litellm')}", read_on=_map_release_date())
        seed = bundled_seed()
        return PriceSource(pricebook.BOOK, seed.drafts, stamp, seed.refused)
    if given == GENAI:
        return _genai(stored, at_us)
    if isinstance(given, str):
        raise PriceError(f"`{given}` is neither `{LITELLM}` nor `{GENAI}`: send a file's content")
    kind = PurePath(given.name).suffix.lower()
    if kind not in KINDS:
        raise PriceError(f"`{given.name}` is not a CSV, YAML or JSON file")
    stamp = ImportStamp(actor(), given.name, digest=sha256(given.data).hexdigest())
    if kind == ".json":
        day = _day(given.read_on, at_us)
        seed = seed_from_map(_text(given), source_date=day)
        return PriceSource(pricebook.BOOK, seed.drafts, replace(stamp, read_on=day), seed.refused)
    chosen = book or given.name
    if chosen in (*(Path(name).name for name in configured), LITELLM, GENAI):
        raise PriceError(f"the price book `{chosen}` exists already: name another with --book")
    if kind == ".csv":
        return PriceSource(chosen, parse_price_csv(given.data, book=chosen), stamp)
    found = parse_price_file(_text(given), book=chosen, rank=APPROVED_RANK)
    if found.aliases:
        raise PriceError(
            f"{chosen}: `aliases` are not imported: put them into a file that `prices` "
            "of the configuration names"
        )
    return PriceSource(chosen, found.drafts, stamp)


def _day(said: str | None, at_us: int) -> str:
    try:
        found = (
            date.fromisoformat(said) if said else datetime.fromtimestamp(at_us / 1e6, UTC).date()
        )
    except ValueError:
        raise PriceError(f"invalid date `{said}`: write YYYY-MM-DD") from None
    return found.isoformat()


def _genai(stored: Sequence[Price], at_us: int) -> PriceSource:
    """Return the package's prices that differ from stored ones, or that it already set."""
    try:
        snapshot = importlib.import_module("genai_prices.data_snapshot")
    except ImportError:
        raise PriceError(GENAI_INSTALL) from None
    release = version("genai-prices")
    market = PriceBook([price for price in stored if price.rank == BUNDLED_RANK])
    known = {price.name: price for price in market.prices_in_force(at_us)}
    providers = snapshot.get_snapshot().providers
    read_on = genaimap.stated_on(providers, at_us)
    seed = genaimap.seed_from_genai(providers, known, at_us=at_us, read_on=read_on)
    own = {price.name for price in stored if price.book == genaimap.BOOK}
    drafts = tuple(
        draft
        for draft in seed.drafts
        if draft.name in own or draft.name not in known or known[draft.name].terms != draft.terms
    )
    stamp = ImportStamp(actor(), f"genai-prices {release}", read_on=read_on)
    return PriceSource(genaimap.BOOK, drafts, stamp, seed.refused)


def _map_release_date() -> str | None:
    return pricebook.RELEASE_DATES.get(version("litellm"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PriceError(f"cannot read the price file {path}: {error.strerror}") from error


def _text(given: PriceText) -> str:
    try:
        return given.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PriceError(f"the price file {given.name} is not UTF-8: save it as UTF-8") from None
