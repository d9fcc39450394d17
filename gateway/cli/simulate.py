"""`breakeven policy simulate`: a set of policies on recorded traffic, in virtual time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import Engine

from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import ShapeFileError, load
from gateway.cli.books import ledger_if_any, prices_of
from gateway.cli.config import Config, load_or_fail
from gateway.cli.output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.config.settings import Settings, resolve_model
from gateway.policysets import examine_set, rules_of
from gateway.whatif.house import House, HouseError, Modelled, Seen, engine_models, pools_asked
from gateway.whatif.page import PlotsMissingError, page
from gateway.whatif.past import SPAN_FORMS, SpanError, past, span_of
from gateway.whatif.tables import notes, tables
from gateway.whatif.tracefiles import TraceError, read_trace
from gateway.whatif.traffic import Arrival
from gateway.whatif.trial import trial
from ledger.policies import policies_in_force
from ledger.queries_fleet import CapacityRow, capacities

IN_FORCE = "in-force"
TRACE_HELP = (
    "A file of requests, also as .gz: CSV with timestamp_s,input_tokens,output_tokens and where"
    " known model,team,max_tokens,prefix_block_hashes_512tok (ids of the prompt's leading parts of"
    " 512 tokens, with spaces between), or the same names in JSONL; the traces of Azure, BurstGPT"
    " and Mooncake as published; `breakeven ledger export --format csv`."
)


def simulate(
    policy: Annotated[str, typer.Option(help=f"YAML file with `policies`, or `{IN_FORCE}`.")],
    trace: Annotated[Path | None, typer.Option(help=TRACE_HELP)] = None,
    ledger: Annotated[
        str | None, typer.Option(help=f"Or the ledger's own traffic: {SPAN_FORMS}.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help=f"A second set beside it: a file, or `{IN_FORCE}`.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Model that requests ask for; FROM=TO for one name of the trace."),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="POOL=PROFILE, or POOL=FILE of `engine fit --out`: how fast it is."),
    ] = None,
    times: Annotated[
        float, typer.Option(min=0.001, max=1000.0, help="So many times the traffic.")
    ] = 1.0,
    most: Annotated[
        int | None, typer.Option(min=1, help="Only so many requests, the earliest.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the APIs' latencies, the same for both sets.")] = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with plots, in one file.")
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Dollars, kept promises, spill and load that a set of policies would have made of traffic.

    Nothing is sent. Decisions are those of the gateway, engines are a measured model, APIs answer
    as they were seen to, or as hosted APIs usually do. Budgets, rate limits and failures are not
    played; output lengths are learned from nothing, as after a first start.
    """
    settings = load_or_fail(config)
    if (trace is None) == (ledger is None):
        fail("name the traffic: either --trace FILE or --ledger last-7-days")
    if html is not None and not html.parent.is_dir():
        fail(f"--html {html}: there is no directory {html.parent}")
    with ledger_if_any(settings, needed=ledger is not None) as books:
        in_force = (
            settings if books is None else rules_of(settings, policies_in_force(books)).settings
        )
        sets = _sets([name for name in (policy, against) if name], settings, in_force)
        prices = prices_of(settings, books)
        traffic = _traffic(books, trace, ledger, most)
        measured = _capacities(books)
    arrivals = _arranged(settings, traffic.arrivals, model or [], times)
    try:
        pools = pools_asked(settings, iter({one.model for one in arrivals}))
        models = engine_models(settings, pools, _named(engine or []), measured)
    except HouseError as error:
        fail(str(error))
    house = House(settings, prices, models, traffic.seen, traffic.start_us)
    with _progress() as bar:
        tasks = {name: bar.add_task(name, total=len(arrivals)) for name, _ in sets}
        document = trial(
            house, sets, arrivals, seed, lambda name, done: bar.update(tasks[name], completed=done)
        )
    document["traffic"] = {**document["traffic"], **traffic.about, "times": times}
    if html is not None:
        try:
            html.write_text(page(document), encoding="utf-8")
        except (OSError, PlotsMissingError) as error:
            fail(f"--html {html}: {error}")
        typer.echo(f"wrote {html}", err=True)
    emit(document, as_json=as_json, show=lambda out: _show(out, document))


@dataclass(frozen=True, slots=True)
class _Traffic:
    arrivals: Sequence[Arrival]
    start_us: int
    seen: Mapping[str, Seen]
    about: Mapping[str, Any]


def _traffic(
    books: Engine | None, trace: Path | None, ledger: str | None, most: int | None
) -> _Traffic:
    now_us = Clock().wall_us()
    if trace is not None:
        try:
            recorded = read_trace(trace, most=most)
        except TraceError as error:
            fail(f"--trace {error}")
        about = {"source": str(trace), "form": recorded.form, "left_out": recorded.left_out}
        return _Traffic(recorded.arrivals, now_us, {}, about)
    assert ledger is not None, "one of the two was named"
    assert books is not None, "a ledger that is not there has ended the command"
    try:
        scope = span_of(ledger, now_us)
    except SpanError as error:
        fail(str(error))
    with books.connect() as connection:
        found = past(connection, scope, most=most)
    if not found.arrivals:
        fail(f"--ledger {ledger}: no conversation was answered in that time")
    about = {"source": f"ledger, {ledger}", "form": "ledger", "left_out": found.refused}
    return _Traffic(found.arrivals, found.start_us, found.seen, about)


def _arranged(
    settings: Settings, arrivals: Sequence[Arrival], named: Sequence[str], times: float
) -> list[Arrival]:
    """With logical models that exist, at the speed asked for."""
    renamed = dict(one.split("=", 1) for one in named if "=" in one)
    plain = [one for one in named if "=" not in one]
    if len(plain) > 1:
        fail(f"--model {plain[1]}: one model without FROM= is enough")
    known = [name for name, one in settings.models.items() if one != "passthrough"]
    only = plain[0] if plain else known[0] if len(known) == 1 else None
    found = []
    for arrival in arrivals:
        name = renamed.get(arrival.model) or (plain[0] if plain else arrival.model or only)
        if name is None:
            fail(f"the trace names no model: say --model with one of {', '.join(known)}")
        found.append(arrival._replace(at_s=arrival.at_s / times, model=name))
    for name in sorted({one.model for one in found}):
        if resolve_model(settings, name) is None:
            fail(
                f"there is no model `{name}` in the configuration: say --model {name}=NAME, or"
                f" --model NAME for all, with one of {', '.join(known)}"
            )
    return found


def _sets(
    chosen: Sequence[str], settings: Settings, in_force: Settings
) -> list[tuple[str, Settings]]:
    """By their files' names, or by all of their paths where these are the same."""
    names = [Path(one).name for one in chosen]
    titles = names if len(set(names)) == len(names) else chosen
    rules = [_rules(name, settings, in_force) for name in chosen]
    return list(zip(titles, rules, strict=True))


def _rules(name: str, settings: Settings, in_force: Settings) -> Settings:
    """The configuration under a set; every fault of a file ends the command."""
    if name == IN_FORCE:
        return in_force
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{name}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}")
    examined = examine_set(text, settings, name)
    if examined.settings is None:
        fail(f"{name} cannot be used: {examined.count}\n" + "\n".join(examined.lines))
    return examined.settings


def _named(words: Sequence[str]) -> dict[str, Modelled]:
    found = {}
    for word in words:
        pool, equals, what = word.partition("=")
        if not (equals and pool and what):
            fail(f"--engine {word}: say POOL=PROFILE with one of {', '.join(sorted(PROFILES))}")
        found[pool] = _modelled(word, what)
    return found


def _modelled(word: str, what: str) -> Modelled:
    if what in PROFILES:
        return Modelled(PROFILES[what].shape, f"profile {what}, as asked for")
    if not Path(what).is_file():
        known = ", ".join(sorted(PROFILES))
        fail(f"--engine {word}: neither a profile nor a file; profiles: {known}")
    try:
        return Modelled(load(Path(what)), f"fitted: {what}")
    except ShapeFileError as error:
        fail(f"--engine {word}: {error}")


def _capacities(books: Engine | None) -> list[CapacityRow]:
    if books is None:
        return []
    with books.connect() as connection:
        return capacities(connection)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True),
    )  # fmt: skip


def _show(out: Console, document: dict[str, Any]) -> None:
    for title, columns, rows in tables(document):
        out.print(table(title, columns, rows))
        out.print()
    for line in notes(document):
        out.print(line, markup=False)
