"""Commands `breakeven engine pack` and `unpack`: bundles for hosts without a network."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.console import Console

from backends.engine.environment import Flavour, flavour_here
from backends.engine.packages import InstallError
from backends.engine.packing import unpack as unpacking
from backends.engine.packing.pack import HERE, PackRequest, target_for
from backends.engine.packing.pack import pack as make
from backends.engine.packing.parts import part_size
from gateway.cli.output import AsJson, emit, fail
from gateway.cli.progress_bars import progress

FlavourName = Annotated[
    Literal["cpu", "cuda"] | None,
    typer.Option(help="vLLM's build; default: cuda where this host has a GPU, else cpu."),
]


def pack(
    out: Annotated[Path, typer.Argument(help="New folder for the bundle.")],
    flavour: FlavourName = None,
    python: Annotated[
        str, typer.Option(help="The target's Python version, for example 3.12.")
    ] = HERE,
    machine: Annotated[
        str,
        typer.Option(help="The target's processor, x86_64 or aarch64; default: this machine's."),
    ] = "",
    glibc: Annotated[str, typer.Option(help="Minimum version of the target's C library.")] = "2.34",
    part: Annotated[
        str, typer.Option("--part-size", help="Maximum size of a file of the bundle: 60M, 4G.")
    ] = "2G",
    model: Annotated[Path | None, typer.Option(help="Folder of a model to include.")] = None,
    find_links: Annotated[
        list[str] | None, typer.Option(help="Folder or page with wheels; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pack the engine, this command and a model for a host without network.

    The target needs Python and glibc, and a driver for CUDA. Run there: sh OUT/install.sh --to
    FOLDER.
    """
    chosen: Flavour = flavour or flavour_here()
    assert chosen in get_args(Flavour)
    try:
        request = PackRequest(
            out.resolve(), chosen, part_size(part), target_for(python, machine, glibc), model,
            tuple(find_links or ()),
        )  # fmt: skip
        with progress(quiet=as_json) as bar:
            task = bar.add_task("pack", total=None)

            def report(stage: str, words: str, share: float | None) -> None:
                bar.update(task, description=f"{stage}: {words[:70]}", completed=share or 0,
                           total=None if share is None else 1.0)  # fmt: skip

            packed = make(request, report)
    except InstallError as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("stopped: what was fetched is kept, the same command goes on")
    emit(asdict(packed), as_json=as_json, show=lambda to: _show(to, packed))


def unpack(
    bundle: Annotated[Path, typer.Argument(help="Folder with the parts and their manifest.")],
    to: Annotated[Path, typer.Option(help="Folder to install into.")] = Path("breakeven-engine"),
    gpu: Annotated[
        bool, typer.Option("--gpu-check/--no-gpu-check", help="Require a GPU and its driver.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Install a bundle without network access. Repeat the command to resume.

    The bundle's `install.sh` does the same on a host without this command.
    """
    try:
        with progress(quiet=as_json) as bar:
            task = bar.add_task("unpack", total=None)

            def show_progress(words: str, share: float | None) -> None:
                bar.update(task, description=words[:70], completed=share or 0,
                           total=None if share is None else 1.0)  # fmt: skip

            manifest = unpacking.unpack(bundle, to.resolve(), show_progress, gpu=gpu)
    except unpacking.UnpackError as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("stopped: the same command goes on")
    found = {name: manifest[name] for name in ("vllm", "flavour", "python", "model")}
    emit(
        found | {"to": to.resolve()}, as_json=as_json,
        show=lambda out: out.print(unpacking.closing_text(manifest, to.resolve()), markup=False),
    )  # fmt: skip


def _show(out: Console, packed: Any) -> None:
    out.print(
        f"{packed.files} files, {packed.total_bytes / 1e6:,.1f} MB in {packed.parts} parts: "
        f"{packed.folder}\n"
        f"manifest sha256 {packed.manifest_sha256}\n"
        "copy the folder to the host, and there: sh install.sh --to FOLDER",
        markup=False,
    )
