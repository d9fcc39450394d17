"""Collector of the facts that a configuration is checked against: files, ledger, date.

It reads files and creates none. Faults of paths are described here; `gateway.config.config_facts`
decides whether they matter.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from backends.engine import tuned
from backends.engine.adapters import BadAdapter, check_fits
from backends.engines import ENGINE_KINDS
from gateway.config.checks.engine_flags import FlagVerdict, judge_flags
from gateway.config.checks.private_hosts import named_hosts
from gateway.config.checks.roles import unknown_kv_sizes
from gateway.config.config_facts import ConfigFacts
from gateway.config.crosschecks_scale import AdviceScore
from gateway.config.faults import Place
from gateway.config.lookups import resolve_hosts
from gateway.config.pool_seats import started_count
from gateway.config.schema import EngineSection, Settings
from gateway.config.statedir import DIRECTORIES, LEDGER
from gateway.config.step_promises import PoolSteps, measured_steps
from ledger.database import URL_VARIABLE, DatabaseError, open_readonly, sqlite_url
from ledger.fleet.fleet_reads import scored_whole
from ledger.identity.known_names import known_names
from ledger.prices.book import Price, PriceBook, PriceError
from ledger.prices.bundled import BOOK, bundled_map, seed_of
from ledger.prices.drafts import APPROVED_RANK, BUNDLED_RANK, PriceDraft, diff
from ledger.prices.files import parse_price_file, read_price_file
from ledger.prices.start_prices import PriceSources, settled_prices
from ledger.prices.stored import stored_prices
from ledger.queries.fleet import capacities

US_PER_S = 1_000_000
Answer = TypeVar("Answer")


def gather_facts(
    settings: Settings,
    at_us: int,
    environ: Mapping[str, str] | None = None,
    *,
    asks_engines: bool = False,
) -> ConfigFacts:
    """Gather the facts. Hosts are resolved only with `environ`, that of the later `serve`.

    `asks_engines`: ask the installed vLLM for its flags.
    """
    flags = judge_flags(settings) if asks_engines else FlagVerdict({}, ())
    wrong = flags.wrong | dict(_wrong_paths(settings))
    prices = _prices(settings, at_us, wrong)
    today = datetime.fromtimestamp(at_us / US_PER_S, tz=UTC).date()
    addresses = (
        {} if environ is None else resolve_hosts(named.host for named in named_hosts(settings))
    )
    names = names_of_keys(settings, environ or {})
    steps = steps_of_pools(settings, environ or {}) if settings.pools else {}
    scores = scores_of_advice(settings, environ or {})
    return ConfigFacts(
        today, at_us, prices, wrong, environ, names, addresses, flags.notes, steps, scores
    )  # fmt: skip


def _wrong_paths(settings: Settings) -> Iterator[tuple[Place, str]]:
    if words := _wrong_state(settings):
        yield ("state_dir",), words
    for name, pool in settings.pools.items():
        engine, here = pool.engine, ("pools", name, "engine")
        if ENGINE_KINDS[engine.kind].program is not None and started_count(pool):
            yield from _wrong_engine(engine, here)
    yield from unknown_kv_sizes(settings)
    for name, provider in settings.providers.items():
        if provider.api_key_file is not None and not Path(provider.api_key_file).is_file():
            words = f"there is no file `{provider.api_key_file}`"
            yield ("providers", name, "api_key_file"), words


def _wrong_engine(engine: EngineSection, here: Place) -> Iterator[tuple[Place, str]]:
    if engine.model is not None and (words := _wrong_model(engine.model)):
        yield (*here, "model"), words
    if engine.profile is not None and (words := _wrong_profile(engine.profile, engine.model)):
        yield (*here, "profile"), words
    for adapter, folder in engine.adapters.items():
        if words := _wrong_adapter(folder, engine.model):
            yield (*here, "adapters", adapter), words
    if engine.environment is not None and not Path(engine.environment, "bin").is_dir():
        words = f"`{engine.environment}` is not a virtual environment: `breakeven engine install`"
        yield (*here, "environment"), f"{words} makes one"


def _wrong_state(settings: Settings) -> str:
    """Return why the state directory is unusable; a missing one is judged by its parent."""
    state = settings.state.absolute()
    there = next(path for path in (state, *state.parents) if os.path.lexists(path))
    if os.path.exists(there) and not there.is_dir():  # noqa: PTH110  (forbidden is not an error)
        return f"`{there}` is a file; a directory is needed"
    inside = [there / name for name in (*DIRECTORIES, LEDGER)] if there == state else []
    for path in (there, *filter(os.path.lexists, inside)):
        if not os.access(path, os.W_OK | (0 if path.name == LEDGER else os.X_OK)):
            cure = "name a directory of yours, or give this one to the user who starts `breakeven`"
            return f"`{path}` cannot be written: {cure}"
    return ""


def _wrong_model(model: str) -> str:
    """Return why an engine could not load a model folder; names of a hub are not checked."""
    path = Path(model)
    if not path.exists():
        return f"there is no directory `{model}`: name the one that holds the downloaded model"
    if not path.is_dir():
        return f"`{model}` is a file: name the directory that holds the model"
    if not (path / "config.json").is_file():
        return f"`{model}` is not a model: it has no config.json"
    return ""


def _wrong_adapter(folder: str, model: str | None) -> str:
    try:
        check_fits(Path(folder), None if model is None else Path(model))
    except BadAdapter as error:
        return str(error)
    return ""


def _wrong_profile(profile: str, model: str | None) -> str:
    """Return why a profile does not fit: flags for other weights may be wrong or slow."""
    try:
        made = tuned.read(Path(profile))
    except tuned.ProfileError as error:
        return str(error)
    if made.config_sha256 is None or model is None or not (Path(model) / "config.json").is_file():
        return ""
    if made.config_sha256 != tuned.digest(Path(model)):
        return f"`{profile}` was found for another model: `breakeven engine tune {model}`"
    return ""


def names_of_keys(settings: Settings, environ: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the names of the ledger's keys by kind; empty if it cannot be read."""
    return _ask_ledger(settings, environ, known_names) or {}


def steps_of_pools(settings: Settings, environ: Mapping[str, str]) -> dict[str, PoolSteps]:
    """Return the step times of own engines; empty if the ledger cannot be read."""
    return _ask_ledger(settings, environ, _measured) or {}


def scores_of_advice(settings: Settings, environ: Mapping[str, str]) -> dict[str, AdviceScore]:
    """Return the ledger's scores of the advice on pools that size themselves."""
    pools = [name for name, pool in settings.pools.items() if pool.scale is not None]
    return (_ask_ledger(settings, environ, partial(_scores, pools)) or {}) if pools else {}


def _scores(pools: list[str], engine: Engine) -> dict[str, AdviceScore]:
    found = {}
    with engine.connect() as connection:
        for pool in pools:
            if (whole := scored_whole(connection, pool)) is not None:
                earned = whole.as_configured.total_pusd - whole.advised.total_pusd
                found[pool] = AdviceScore(whole.covered_us / 3.6e9, earned / 1e12)
    return found


def _measured(engine: Engine) -> dict[str, PoolSteps]:
    with engine.connect() as connection:
        return measured_steps(capacities(connection))


def _ask_ledger(
    settings: Settings, environ: Mapping[str, str], ask: Callable[[Engine], Answer]
) -> Answer | None:
    named = environ.get(settings.ledger.url_env or "", "") or environ.get(URL_VARIABLE, "")
    url = settings.ledger.url or named.strip()
    path = settings.state / LEDGER
    if not url and (settings.ledger.url_env or not path.is_file()):
        return None
    try:
        engine = open_readonly(url or sqlite_url(path))
    except (ArgumentError, DatabaseError, ValueError, ImportError):
        return None
    try:
        return ask(engine)
    except SQLAlchemyError:
        return None
    finally:
        engine.dispose()


def _prices(settings: Settings, at_us: int, wrong: dict[Place, str]) -> PriceBook | None:
    """Return the price book of a start; unusable files are added to `wrong`.

    Stored and imported prices are included only if the ledger is a local file.
    """
    drafts: list[PriceDraft] = []
    texts: list[tuple[str, str]] = []
    stated: dict[str, str] = {}
    for index, path in enumerate(map(Path, settings.prices)):
        try:
            texts.append((path.name, read_price_file(path)))
            found = parse_price_file(texts[-1][1], book=path.name, rank=index + 1)
            diff((), found.drafts, at_us=at_us)
        except (PriceError, UnicodeDecodeError) as error:
            wrong["prices", index] = " ".join(str(error).split())
            continue
        drafts += found.drafts
        stated |= found.aliases
    if any(place[0] == "prices" for place in wrong):
        return None
    sources = PriceSources(bundled_map(), tuple(texts))
    try:
        stored = _read_here(settings, partial(settled_prices, sources=sources, at_us=at_us))
        if stored is not None:
            return PriceBook(stored, stated)
        imported = [price for price in _read_here(settings, stored_prices) or () if
                    price.rank >= APPROVED_RANK
                    or (price.rank == BUNDLED_RANK and price.book != BOOK)]  # fmt: skip
        drafts = [*seed_of(sources.bundled).drafts, *drafts]
        first = max((price.version for price in imported), default=0) + 1
        return PriceBook([*imported, *diff((), drafts, at_us=at_us).prices(first)], stated)
    except PriceError as error:
        wrong["prices",] = str(error)
        return None


def _read_here(
    settings: Settings, read: Callable[[Engine], list[Price] | None]
) -> list[Price] | None:
    """Read the ledger if it is a local file, else return `None`."""
    path = settings.state / LEDGER
    if settings.ledger.url or settings.ledger.url_env or not path.is_file():
        return None
    engine = open_readonly(sqlite_url(path))
    try:
        return read(engine)
    except DBAPIError:  # older schema, or unreadable: a start reports it
        return None
    finally:
        engine.dispose()
