"""Training of the model that `make run` serves, within a given time, and its checkpoint.

The learning rate depends on the spent share of the budget, so that any budget ends at 1 % of its
peak. The held-out documents are evaluated ten times, and the best weights are written. With
`--steps` in place of `--seconds`, the same seed on the same machine gives the same weights.

It needs torch, tokenizers, transformers and safetensors, which the engine's environment has. Run:

    python -m backends.engine.training.train --corpus corpus.jsonl.xz --out DIRECTORY --seconds 240
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from backends.engine.training.network import LARGE, SMALL, Llama, NetworkSize, checkpoint, config
from backends.engine.training.text import KINDS, TokenStream, TrainingText, read, save_tokenizer

WARM, DECAY = 0.02, 0.1
LOOKS = 10
SAMPLING = {"do_sample": True, "temperature": 0.6, "top_p": 0.9}  # defaults in the checkpoint
LAST_PHASE = 0.8  # of the budget; after it rows are as long as the context
_SAY_S = 5.0
_LEAST_S = 20.0


@dataclass(frozen=True, slots=True)
class TrainingMachine:
    """Batch shapes (rows, length) on a device: first phase, last phase, evaluation of a kind."""

    device: str
    short: tuple[int, int]
    long: tuple[int, int]
    look: tuple[int, int]

    @property
    def phases(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.short, self.long


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """Size of a network and its training. `shares` are of the training rows, by kind.

    With `by_block`, blocks are compiled one by one. They are alike, whereas compiling a network of
    many blocks as a whole would take minutes.
    """

    size: NetworkSize
    shares: dict[str, float]
    peak: float
    dropout: float
    gpu: TrainingMachine
    cpu: TrainingMachine
    by_block: bool = False


CPU = TrainingMachine("cpu", (8, 128), (2, 512), (8, 256))
RECIPES = {
    "small": TrainingRecipe(
        SMALL, {"chat": 0.5, "topic": 0.15, "source": 0.35}, 4e-3, 0.1,
        TrainingMachine("cuda", (128, 1024), (32, 4096), (48, 1024)), CPU,
    ),
    "large": TrainingRecipe(
        LARGE, {"chat": 0.28, "topic": 0.02, "source": 0.7}, 1.5e-3, 0.0,
        TrainingMachine("cuda", (32, 2048), (32, 2048), (48, 1024)), CPU, by_block=True,
    ),
}  # fmt: skip
_LONGEST = 4096
_AT_ONCE = 16  # rows of a measurement


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """Budget of a training in seconds, or in steps for a repeatable result.

    `ends` is a monotonic time that may shorten `seconds`.
    """

    seconds: float
    steps: int | None = None
    ends: float | None = None

    def begin(self, now: float) -> "TrainingBudget":
        if self.ends is None:
            return self
        return replace(self, seconds=max(_LEAST_S, min(self.seconds, self.ends - now)))

    def spent(self, step: int, seconds: float) -> float:
        return step / self.steps if self.steps else seconds / self.seconds


class TrainingRows:
    """Sampler of training rows, by the share of each kind."""

    def __init__(
        self, streams: dict[str, TokenStream], shares: dict[str, float], device: str, seed: int
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._device = device
        self._shares = [shares[kind] for kind in KINDS]
        self._starts = {kind: streams[kind].starts for kind in KINDS}
        self._tokens = {
            kind: torch.from_numpy(_wrap_tokens(streams[kind].tokens)).to(device) for kind in KINDS
        }

    def draw(self, shape: tuple[int, int]) -> Any:
        """Return random rows of token ids, of shape (rows, length + 1)."""
        rows, length = shape
        counts = self._rng.multinomial(rows, self._shares)
        parts = []
        for kind, count in zip(KINDS, counts, strict=True):
            starts = self._rng.choice(self._starts[kind], int(count))
            at = torch.from_numpy(starts).to(self._device)[:, None]
            parts.append(self._tokens[kind][at + torch.arange(length + 1, device=self._device)])
        return torch.cat(parts)


def _wrap_tokens(tokens: Any) -> Any:
    """Return the tokens followed by their own beginning, so that a row may start anywhere."""
    return np.concatenate((tokens, np.resize(tokens, _LONGEST + 1)))


class TrainingRun:
    """Training state: the network, its optimiser, and the machine that it runs on."""

    def __init__(self, recipe: TrainingRecipe, machine: TrainingMachine, dropout: float) -> None:
        self.machine, self.recipe = machine, recipe
        self.network = Llama(recipe.size, dropout).to(machine.device)
        is_gpu = machine.device == "cuda"
        self.loss: Callable[[Any], Any] = self.network
        if is_gpu and recipe.by_block:
            for block in self.network.layers:
                block.compile(dynamic=False)
        elif is_gpu:
            self.loss = torch.compile(self.network, dynamic=False)
        matrices = [parameter for parameter in self.network.parameters() if parameter.dim() == 2]
        others = [parameter for parameter in self.network.parameters() if parameter.dim() != 2]
        self.optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
            lr=recipe.peak, betas=(0.9, 0.95), fused=is_gpu,
        )  # fmt: skip
        self._dtype = torch.bfloat16 if is_gpu else torch.float32

    def step(self, rows: Any, rate: float) -> Any:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast(self.machine.device, self._dtype, enabled=self._dtype != torch.float32):
            loss = self.loss(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    def compile(self, rows: TrainingRows) -> None:
        """Compile the network before the time counts, by steps with a learning rate of 0.

        Such steps change no weight. If compiling fails, training runs uncompiled and slower.
        """
        for shape in sorted(set(self.machine.phases)):
            try:
                self.step(rows.draw(shape), 0.0)
            except torch._dynamo.exc.TorchDynamoException as error:  # noqa: SLF001  (its one name)
                sys.stdout.write(f"not compiled: {str(error).splitlines()[0]}\n")
                self.loss = self.network
                for block in self.network.layers:
                    block._compiled_call_impl = None  # noqa: SLF001  (torch has no other way back)
                self.step(rows.draw(shape), 0.0)

    def evaluate_losses(self, streams: dict[str, TokenStream]) -> dict[str, float]:
        """Return the mean loss in nats per token on the held-out documents, by kind."""
        rows, length = self.machine.look
        found = {}
        self.network.eval()
        # Compiling for these shapes would take longer than running them eagerly.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            for kind, stream in streams.items():
                tokens = torch.from_numpy(_wrap_tokens(stream.tokens)).to(self.machine.device)
                starts = np.linspace(0, len(stream.starts) - 1, rows).astype(int)
                at = torch.from_numpy(stream.starts[np.unique(starts)])
                places = at.to(self.machine.device)[:, None]
                whole = tokens[places + torch.arange(length + 1, device=self.machine.device)]
                losses = [self.network(part).item() for part in whole.split(_AT_ONCE)]
                weights = [len(part) for part in whole.split(_AT_ONCE)]
                found[kind] = float(np.average(losses, weights=weights))
        self.network.train()
        return found


def rate_at(spent: float, peak: float) -> float:
    """Return the learning rate: a linear rise to the peak, then a half cosine to 1 % of it.

    `spent` is the spent share of the budget, from 0 to 1.
    """
    if spent < WARM:
        return peak * spent / WARM
    along = min(1.0, (spent - WARM) / (1 - WARM))
    return peak * (0.01 + 0.99 * (1 + math.cos(math.pi * along)) / 2)


def mix_losses(losses: dict[str, float], shares: dict[str, float]) -> float:
    return sum(shares[kind] * losses[kind] for kind in KINDS)


def train(
    training: TrainingRun,
    text: TrainingText,
    budget: TrainingBudget,
    seed: int,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train within a budget. Return the best weights, and the figures of the training."""
    recipe = training.recipe
    rows = TrainingRows(text.learned, recipe.shares, training.machine.device, seed)
    training.compile(rows)
    say("ready")
    began = said = time.monotonic()
    budget = budget.begin(began)
    best: dict[str, Any] = {}
    figures: dict[str, Any] = {"loss": math.inf}
    step = tokens = looks = 0
    spent = 0.0
    while spent < 1:
        shape = training.machine.phases[spent >= LAST_PHASE]
        loss = training.step(rows.draw(shape), rate_at(spent, recipe.peak))
        step, tokens = step + 1, tokens + shape[0] * shape[1]
        now = time.monotonic()
        if now - said >= _SAY_S:
            value = loss.item()
            now = said = time.monotonic()
            pace = tokens / (now - began)
            say(f"{spent:6.1%} step {step} loss {value:.3f} {pace:,.0f} tokens/s")
        spent = budget.spent(step, now - began)
        if spent >= (looks + 1) / LOOKS:
            looks += 1
            seen = training.evaluate_losses(text.held_out)
            say(f"{spent:6.1%} held out: {_losses_text(seen)}")
            mixed = mix_losses(seen, recipe.shares)
            if mixed < figures["loss"]:
                best = {
                    name: weight.detach().to("cpu", copy=True)
                    for name, weight in training.network.named_parameters()
                }
                figures = {
                    "loss": mixed,
                    "by_kind": seen,
                    "step": step,
                    "tokens": tokens,
                }
    return best, figures | {"steps": step, "seconds": round(time.monotonic() - began, 1)}


def _losses_text(losses: dict[str, float]) -> str:
    return ", ".join(f"{kind} {loss:.3f} ({math.exp(loss):.1f})" for kind, loss in losses.items())


def write(folder: Path, weights: dict[str, Any], text: TrainingText, size: NetworkSize) -> int:
    """Write the checkpoint. Return the total bytes of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = save_tokenizer(text, folder, size.context)
    tensors = checkpoint(weights)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    for name, document in (
        ("generation_config.json", ids | SAMPLING),
        ("config.json", config(size, ids)),
    ):
        (folder / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return sum(path.stat().st_size for path in folder.iterdir())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--within", type=float, help="seconds, reading and compiling included")
    parser.add_argument("--steps", type=int, help="in place of seconds: repeatable")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dropout", type=float, help="default: the size's")
    parser.add_argument("--size", choices=RECIPES, default="small")
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    torch.set_float32_matmul_precision("high")
    began = time.monotonic()

    def print_progress(words: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  {words}\n")
        sys.stdout.flush()

    recipe = RECIPES[given.size]
    size, dropout = recipe.size, recipe.dropout if given.dropout is None else given.dropout
    text = read(given.corpus, size.vocabulary)
    for kind in KINDS:
        many, kept = len(text.learned[kind].tokens), len(text.held_out[kind].tokens)
        print_progress(f"{kind}: {many:,} tokens to learn, {kept:,} held out")
    training = TrainingRun(recipe, recipe.gpu if torch.cuda.is_available() else recipe.cpu, dropout)
    count = sum(parameter.numel() for parameter in training.network.parameters())
    print_progress(f"{count:,} parameters on {training.machine.device}")
    budget = TrainingBudget(given.seconds, given.steps)
    if given.within:
        budget = TrainingBudget(given.within, None, began + given.within)
    weights, figures = train(training, text, budget, given.seed, print_progress)
    total = write(given.out, weights, text, size)
    figures |= {
        "parameters": count, "bytes": total, "seed": given.seed, "dropout": dropout,
        "device": training.machine.device,
        "perplexity": {kind: math.exp(loss) for kind, loss in figures["by_kind"].items()},
        "bits_per_byte": {
            kind: loss / math.log(2) / text.bytes_per_token[kind]
            for kind, loss in figures["by_kind"].items()
        },
    }  # fmt: skip
    (given.out / "training.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print_progress(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
