"""Command `breakeven policy simulate`: policy sets on recorded traffic, in virtual time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from sqlalchemy import Engine

from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import ShapeFileError, load
from gateway.cli.admin_backend import AdminBackend, open_backend
from gateway.cli.config import Config, load_or_fail
from gateway.cli.ledger_access import ledger_if_any, prices_of
from gateway.cli.output import AsJson, Strict, emit, fail, read_or_fail, table
from gateway.cli.progress_bars import bars
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.admin import whatifs as verbs
from gateway.control.admin.gateway_address import gateway_url
from gateway.control.whatif_jobs import IN_FORCE, REQUESTS_MOST
from gateway.policies.sets import examine_set, rules_of
from gateway.whatif.ledger_traffic import SPAN_FORMS, SpanError
from gateway.whatif.page import PlotsMissingError, page
from gateway.whatif.replay_fleet import EngineModelSource, HouseError
from gateway.whatif.tables import breaks_promises, notes, tables
from gateway.whatif.tracefiles import TraceError, read_trace
from gateway.whatif.traffic_selection import (
    TrafficSelection,
    WhatIfInputError,
    arrange_traffic,
    engine_model_source,
    house_of,
    pool_and_model,
    read_recorded_traffic,
)
from gateway.whatif.whatif_run import run_whatif
from ledger.policies import policies_in_force

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Options that a local and a remote what-if share."""

    ledger: str | None
    model: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    times: float = 1.0
    most: int | None = None
    seed: int = 1


def simulate_remotely(
    sets: Sequence[tuple[str, str]], wanted: SimulateOptions, config: Path
) -> dict[str, Any]:
    """Run a what-if on another gateway with a progress bar; `sets` has one or two, by name."""
    assert wanted.ledger is not None, "only its ledger has a gateway elsewhere"
    (name, text), *rest = sets
    asked = verbs.WhatIfInput(
        policies=text, name=name, ledger=wanted.ledger, model=list(wanted.model),
        engine=list(wanted.engine), times=wanted.times, most=wanted.most or REQUESTS_MOST,
        seed=wanted.seed,
    )  # fmt: skip
    if rest:
        asked.against_name, asked.against = rest[0]
    with open_backend(config) as desk, bars() as bar:
        job = desk.do(verbs.policies_simulate, asked)["job"]
        return _wait_for_job(desk, job, bar)


def _wait_for_job(desk: AdminBackend, job: str, bar: Progress) -> dict[str, Any]:
    task = bar.add_task("starts", total=None)
    while True:
        found = desk.do(verbs.policies_simulated, verbs.JobInput(job))
        now = found["progress"]
        bar.update(task, description=now["doing"], completed=now["done"], total=now["of"] or None)
        if found["state"] == "done":
            result: dict[str, Any] = found["result"]
            return result
        if found["state"] == "failed":
            fail(str(found["fault"]))
        time.sleep(LOOK_S)


TRACE_HELP = (
    "A file of requests, also as .gz: CSV with timestamp_s,input_tokens,output_tokens and where"
    " known model,team,session,max_tokens,prefix_block_hashes_512tok (ids of the prompt's leading"
    " parts of 512 tokens, with spaces between), or the same names in JSONL; the traces of Azure,"
    " BurstGPT and Mooncake as published; `breakeven ledger export --format csv`."
)


def simulate(
    policy: Annotated[str, typer.Option(help=f"YAML file with `policies`, or `{IN_FORCE}`.")],
    trace: Annotated[Path | None, typer.Option(help=TRACE_HELP)] = None,
    ledger: Annotated[
        str | None, typer.Option(help=f"Replay recorded traffic of the ledger: {SPAN_FORMS}.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help=f"Second policy set to compare with: a file, or `{IN_FORCE}`."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Model of all requests; FROM=TO maps one name of the trace."),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            help="Speed of a pool's engines: POOL=PROFILE, or POOL=FILE of `engine fit --out`."
        ),
    ] = None,
    times: Annotated[
        float, typer.Option(min=0.001, max=1000.0, help="Multiply the traffic by this factor.")
    ] = 1.0,
    most: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of requests, earliest first.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the APIs' latencies, the same for both sets.")
    ] = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with plots to this file.")
    ] = None,
    strict: Strict = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Simulate policies on recorded traffic: dollars, SLOs, spill and load.

    Nothing is sent. Decisions are the gateway's, engines are measured models, APIs answer with
    observed or typical latencies. Budgets, rate limits and failures are not simulated. With
    --strict, exits with 1 if own answers meet fewer SLOs than a policy requires.
    """
    if html is not None and not html.parent.is_dir():
        fail(f"cannot write --html {html}: the folder {html.parent} does not exist")
    chosen = [name for name in (policy, against) if name]
    wanted = SimulateOptions(ledger, tuple(model or ()), tuple(engine or ()), times, most, seed)
    if gateway_url() is not None:
        if trace is not None or ledger is None:
            fail(
                "with --gateway only its own recorded traffic can be simulated: use "
                "--ledger last-7-days"
            )
        document = simulate_remotely(_named_sets(chosen), wanted, config)
    else:
        document = _here(chosen, wanted, trace, config)
    if html is not None:
        try:
            html.write_text(page(document), encoding="utf-8")
        except (OSError, PlotsMissingError) as error:
            fail(f"--html {html}: {error}")
        typer.echo(f"wrote {html}", err=True)
    emit(document, as_json=as_json, show=lambda out: _show(out, document))
    if strict and breaks_promises(document):
        raise typer.Exit(1)


def _here(
    chosen: Sequence[str], wanted: SimulateOptions, trace: Path | None, config: Path
) -> dict[str, Any]:
    settings = load_or_fail(config)
    ledger, most, times = wanted.ledger, wanted.most, wanted.times
    if (trace is None) == (ledger is None):
        fail("name the traffic: either --trace FILE or --ledger last-7-days")
    try:
        with ledger_if_any(settings, needed=ledger is not None) as books:
            stored = None if books is None else policies_in_force(books)
            sets = _sets(chosen, settings, rules_of(settings, stored).settings)
            prices = prices_of(settings, books)
            traffic = _traffic(books, trace, ledger, most)
            traffic = arrange_traffic(settings, traffic, wanted.model, times)
            house = house_of(settings, prices, traffic, _models_by_pool(wanted.engine), books)
    except (WhatIfInputError, HouseError, SpanError) as error:
        fail(str(error))
    with bars() as bar:
        tasks = {name: bar.add_task(name, total=len(traffic.arrivals)) for name, _ in sets}
        document = run_whatif(
            house, sets, traffic.arrivals, wanted.seed,
            lambda name, done: bar.update(tasks[name], completed=done),
        )  # fmt: skip
    document["traffic"] = {**document["traffic"], **traffic.about, "times": times}
    return document


def _traffic(
    books: Engine | None, trace: Path | None, ledger: str | None, most: int | None
) -> TrafficSelection:
    now_us = Clock().wall_us()
    if trace is not None:
        try:
            recorded = read_trace(trace, most=most)
        except TraceError as error:
            fail(f"--trace {error}")
        about = {"source": str(trace), "form": recorded.form, "left_out": recorded.left_out}
        start_us, came_us = recorded.start_us(now_us), recorded.came_us
        return TrafficSelection(recorded.arrivals, start_us, {}, about, came_us)
    assert ledger is not None, "one of the two was named"
    assert books is not None, "a ledger that is not there has ended the command"
    return read_recorded_traffic(books, ledger, most, now_us)


def _sets(
    chosen: Sequence[str], settings: Settings, in_force: Settings
) -> list[tuple[str, Settings]]:
    return [
        (title, in_force if text == IN_FORCE else _rules(text, settings, title))
        for title, text in _named_sets(chosen)
    ]


def _named_sets(chosen: Sequence[str]) -> list[tuple[str, str]]:
    """Return the files' texts by name, or by path if names are equal."""
    names = [Path(choice).name for choice in chosen]
    titles = names if len(set(names)) == len(names) else chosen
    return list(zip(titles, map(_text, chosen), strict=True))


def _text(name: str) -> str:
    return IN_FORCE if name == IN_FORCE else read_or_fail(Path(name))


def _rules(text: str, settings: Settings, name: str) -> Settings:
    """Return the settings with this policy set; print all faults and exit if it is invalid."""
    examined = examine_set(text, settings, name)
    if examined.settings is None:
        fail(f"{name} cannot be used: {examined.count}\n" + "\n".join(examined.lines))
    return examined.settings


def _models_by_pool(words: Sequence[str]) -> dict[str, EngineModelSource]:
    found = {}
    for word in words:
        pool, what = pool_and_model(word)
        if what in PROFILES or not Path(what).is_file():
            found[pool] = engine_model_source(word, what)
            continue
        try:
            found[pool] = EngineModelSource(load(Path(what)), f"fitted: {what}")
        except ShapeFileError as error:
            fail(f"--engine {word}: {error}")
    return found


def _show(out: Console, document: dict[str, Any]) -> None:
    for title, columns, rows in tables(document):
        out.print(table(title, columns, rows))
        out.print()
    for line in notes(document):
        out.print(line, markup=False)
