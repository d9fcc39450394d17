"""Commands `breakeven config`: import of LiteLLM configurations, and the JSON Schema.

An import's result goes to stdout or `--out`. Settings that could not be imported go to stderr, one
line each, as `FILE: place: why`. Nothing is started, no key is read, and the file is unchanged.
"""

import csv
import importlib
import io
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from gateway.cli.output import AsJson, emit, fail, note, read_or_fail
from gateway.config.checks.provider_names import check_adapter_needs
from gateway.config.deployments import COSTS
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.editors import json_schema
from gateway.config.litellm_import import ImportedConfig, ImportedPrice, carry_over
from gateway.config.litellm_notes import ImportLoss, ImportNote, lost
from gateway.config.sameweights import same_weights
from gateway.config.settings import find_contradictions
from gateway.newfile import new_file
from ledger.journals.records import TokenCounts
from ledger.prices.book import cost_pusd
from ledger.prices.bundled import bundled_seed
from ledger.prices.drafts import DraftChange

_RANKS = ("error", "warning", "note")
_HEAD = "# Carried over from {name} by `breakeven config import`. Try it: `breakeven check`.\n"


class PlainDumper(yaml.SafeDumper):
    """YAML dumper without anchors such as `*id001`, which are hard to edit."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  (PyYAML's signature)
        return True


def import_command(
    file: Annotated[Path, typer.Argument(help="A LiteLLM proxy's config.yaml.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: standard output.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="GPU of your own engines, for example H200.")
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0.0, help="Cost of one GPU for an hour, in USD.")
    ] = None,
    compare_with: Annotated[
        str | None,
        typer.Option(help="API model to compare own engines with: openai/gpt-4o-mini."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="Write its prices to this CSV, for `prices import`.")
    ] = None,
    accept: Annotated[
        list[ImportLoss] | None, typer.Option(help="Accept this loss; may be repeated.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert a LiteLLM configuration, and list what could not be imported.

    What changes answers, money, access or checks is an error: nothing is written unless accepted.
    """
    given = _read(file)
    runs_on = {
        "type": gpu or "",
        **({} if usd_per_hour is None else {"usd_per_hour": usd_per_hour}),
    }
    carried = carry_over(
        given, gpu=runs_on, provider_of=_provider_of, sold_as=_sold_as, environ=os.environ
    )
    _require(file, carried, gpu)
    _compare(file, carried, compare_with)
    if carried.prices and prices is None:
        words = (
            "the file has prices of its own: write them with --prices FILE, then use "
            "`breakeven prices import --from FILE`"
        )
        carried.notes.append(lost("model_list", words, ImportLoss.PRICES))
    text = _HEAD.format(name=file.name)
    text += yaml.dump(carried.document, Dumper=PlainDumper, sort_keys=False)
    carried.notes += _refused(text)
    notes = merge_notes(carried.notes, frozenset(accept or ()))
    failing = {"error", "warning"} if strict else {"error"}
    fails = any(note["rank"] in failing for note in notes)
    if not fails:
        if out is not None:
            _write(out, text)
        if prices is not None and carried.prices:
            _write(prices, _csv(carried.prices))
    if as_json:
        emit({"config": carried.document, "notes": notes}, as_json=True, show=lambda _: None)
    else:
        if out is None and not fails:
            typer.echo(text, nl=False)
        for imported in notes:
            typer.echo(f"{file}: {note_line(imported)}", err=True)
        _say_outcome(file, out, notes, strict=strict, fails=fails)
    raise typer.Exit(1 if fails else 0)


def _require(file: Path, carried: ImportedConfig, gpu: str | None) -> None:
    """Fail if nothing could be imported, or the engines' hardware is unknown."""
    if "models" not in carried.document:
        for note in merge_notes(carried.notes, ()):
            typer.echo(f"{file}: {note_line(note)}", err=True)
        fail(f"{file}: no entry of `model_list` could be carried over")
    if "pools" in carried.document and not gpu:
        names = ", ".join(carried.document["pools"])
        fail(f"{file} has engines of your own ({names}): name their GPU, for example --gpu H200")


def _refused(text: str) -> list[ImportNote]:
    """Return the faults that the gateway itself would find, for `check` or a start."""
    draft = draft_settings(read_document(text))
    faults = [*draft.faults, *find_contradictions(draft)]
    if draft.settings is not None:
        faults += check_adapter_needs(draft.settings, None)
    return [
        lost(fault.path, f"`check` refuses it: {fault.message}", ImportLoss.MODELS)
        for fault in faults
        if fault.severity == "error"
    ]


def _compare(file: Path, carried: ImportedConfig, compare_with: str | None) -> None:
    """Set an API comparator for every model that own engines serve, or fail."""
    models: dict[str, Any] = carried.document["models"]
    missing = [
        name for name, model in models.items()
        if isinstance(model, dict) and "compare_with" not in model
        and any(target.startswith("pool:") for target in model.get("targets", ()))
    ]  # fmt: skip
    if missing and compare_with is None:
        names = ", ".join(missing)
        fail(
            f"{file}: no API price is known to compare your engines with ({names}): name an API "
            "model, for example --compare-with openai/gpt-4o-mini"
        )
    for name in missing:
        models[name]["compare_with"] = [compare_with]
    told = {f"models.{name}.compare_with" for name in missing}
    carried.notes = [note for note in carried.notes if note.place not in told]


def schema_command(as_json: AsJson = False) -> None:
    """Print the JSON Schema of the configuration file, for editors."""
    schema = json_schema()
    emit(schema, as_json=as_json, show=lambda out: out.print_json(data=schema))


def _read(file: Path) -> dict[str, Any]:
    document = read_document(read_or_fail(file))
    if document.value is None:
        fail("\n".join(f"{file}:{fault.line or 1}: {fault.message}" for fault in document.faults))
    value: dict[str, Any] = document.value
    if not isinstance(value.get("model_list"), list):
        if value.get("include"):
            fail(
                f"{file} has its `model_list` in the files of `include`: copy all of them "
                "into one file"
            )
        fail(f"{file} has no `model_list`: name the `config.yaml` of a LiteLLM proxy")
    return value


def _provider_of(model: str) -> str | None:
    """Return LiteLLM's guess for a bare name; imported on use, because it takes seconds."""
    litellm = importlib.import_module("backends.litellm").load()
    try:
        provider = litellm.get_llm_provider(model)[1]
    except Exception:  # noqa: BLE001  (of LiteLLM's, whatever it raises: it does not know)
        return None
    return str(provider)


def _sold_as(served: str) -> str | None:
    """Return the API with the same weights by the installed price map, 1:1 input to output."""
    usual = TokenCounts(input=1000, output=1000)
    return same_weights(
        served,
        (
            (draft.name, cost_pusd(usual, DraftChange(draft, 0).price(0)))
            for draft in bundled_seed().drafts
            if draft.retired_on is None and "#" not in draft.name
        ),
    )


def merge_notes(notes: Sequence[ImportNote], accepted: Collection[str]) -> list[dict[str, Any]]:
    """Return the notes by rank; equal notes on one setting are merged with a count."""
    counted = Counter((note.place.rpartition(".")[2], note.text) for note in notes)
    first: dict[tuple[str, str], ImportNote] = {}
    for carried in notes:
        first.setdefault((carried.place.rpartition(".")[2], carried.text), carried)
    told = [
        {
            "rank": note.rank(accepted),
            "place": note.place,
            "lost": None if note.loss is None else note.loss.value,
            "text": note.text + (f" (and {counted[key] - 1} more)" if counted[key] > 1 else ""),
        }
        for key, note in first.items()
    ]
    return sorted(told, key=lambda note: _RANKS.index(note["rank"]))


def _say_outcome(
    file: Path,
    out: Path | None,
    notes: Sequence[Mapping[str, Any]],
    *,
    strict: bool,
    fails: bool,
) -> None:
    if fails:
        note(stop_line(file, notes, strict=strict))
    elif out is not None:
        note(f"wrote {out}; check it with `breakeven check --config {out}`")


def stop_line(file: Path, notes: Sequence[Mapping[str, Any]], *, strict: bool) -> str:
    """Return in one line what stopped an import and what to do.

    `notes` are from `merge_notes`; with `strict`, warnings stop an import, too.
    """
    ranks = Counter(note["rank"] for note in notes)
    counts = [
        f"{ranks[rank]} {rank}{'' if ranks[rank] == 1 else 's'}"
        for rank in (("error", "warning") if strict else ("error",))
        if ranks[rank]
    ]
    accept = sorted({note["lost"] for note in notes if note["rank"] == "error"})
    ways = []
    if accept:
        ways.append(f"accept the losses with {' '.join(f'--accept {loss}' for loss in accept)}")
    if strict and ranks["warning"]:
        ways.append("leave out --strict")
    stopped = f"nothing was written, because of {' and '.join(counts)}"
    return f"{stopped}: {', '.join(ways)}, or change {file}"


def note_line(note: Mapping[str, Any]) -> str:
    """Return a note as text, with the option that accepts a loss."""
    accept = f" (--accept {note['lost']})" if note["rank"] == "error" else ""
    return f"{note['rank']}: {note['place']}: {note['text']}{accept}"


def _csv(prices: Sequence[ImportedPrice]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    stated = {kind for price in prices for kind, _ in price.kinds}
    columns = [kind for kind in COSTS if kind in stated]
    steps = ["tier", "above_tokens"] if any(row.tier or row.above_tokens for row in prices) else []
    writer.writerow(["name", *steps, *(f"{kind}_usd_per_token" for kind in columns)])
    for price in dict.fromkeys(prices):
        known = dict(price.kinds)
        place = [price.tier, price.above_tokens or ""] if steps else []
        cells = (f"{known[kind]:f}" if kind in known else "" for kind in columns)
        writer.writerow([price.name, *place, *cells])
    return out.getvalue()


def _write(path: Path, text: str) -> None:
    try:
        with new_file(path, replace=False) as file:
            file.write(text.encode())
    except FileExistsError:
        fail(f"the file {path} exists and is not replaced: name another file")
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
