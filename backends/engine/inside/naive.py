"""Baseline server: FastAPI and Transformers' `generate`, one request at a time.

The lowest steps of `engine ladder` use it: plain attention, torch's fused attention, compiled code,
4-bit weights, and static batches, whose requests wait for each other. A model that exceeds one GPU
is spread by layers (`--gpus`), which run one after the other. The baseline is not slowed on
purpose: 16-bit weights, a KV cache, streamed tokens, greedy decoding. A request is completed even
if its client disconnects, as in such servers. Serves only OpenAI's `/v1/completions`.

Runs as a standalone script: `python naive.py --model DIRECTORY --port N`.
"""

import argparse
import asyncio
import json
import queue
import sys
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastapi
import torch
import transformers
import uvicorn
from fastapi.responses import JSONResponse, StreamingResponse

EAGER = "eager"


@dataclass
class NaiveJob:
    """A request: prompt tokens, and a queue of output tokens that ends with `None`."""

    prompt: list[int]
    tokens: int
    ignore_eos: bool
    out: asyncio.Queue[int | Exception | None]
    loop: asyncio.AbstractEventLoop
    made: int = 0
    ended: bool = field(default=False)

    def put(self, what: int | Exception | None) -> None:
        self.loop.call_soon_threadsafe(self.out.put_nowait, what)


class NaiveEngine:
    """The model and the thread that runs it, one batch after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        devices = devices_of(options.gpus)
        self.device = devices[0]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
        self.model = load(options, devices)
        told = self.model.generation_config
        ends = told.eos_token_id
        self.ends = set(ends) if isinstance(ends, list) else {ends}
        told.eos_token_id = None  # `_Streamer` and `_Ends` end each row
        pad = self.tokenizer.pad_token_id
        self.pad = pad if pad is not None else next((e for e in self.ends if e is not None), 0)
        self.jobs: queue.SimpleQueue[NaiveJob] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            batch = [self.jobs.get()]
            until_s = time.monotonic() + self._options.wait_s
            while len(batch) < self._options.batch:
                try:
                    batch.append(self.jobs.get(timeout=max(0.0, until_s - time.monotonic())))
                except queue.Empty:
                    break
            try:
                self._answer(batch)
            except Exception as error:  # noqa: BLE001  (every waiting request gets the error)
                for job in batch:
                    job.put(error)

    def _answer(self, batch: list[NaiveJob]) -> None:
        """Generate the answers of a batch, which ends with its longest answer.

        Prompts are padded on the left to the longest one.
        """
        width = max(len(job.prompt) for job in batch)
        rows = [[self.pad] * (width - len(job.prompt)) + job.prompt for job in batch]
        masks = [[0] * (width - len(job.prompt)) + [1] * len(job.prompt) for job in batch]
        streamer = _Streamer(batch, self.ends)
        with torch.inference_mode():
            self.model.generate(
                input_ids=torch.tensor(rows, device=self.device),
                attention_mask=torch.tensor(masks, device=self.device),
                generation_config=self._how(max(job.tokens for job in batch)),
                streamer=streamer,
                stopping_criteria=transformers.StoppingCriteriaList([_Ends(batch)]),
            )

    def _how(self, tokens: int) -> Any:
        how = transformers.GenerationConfig(
            max_new_tokens=tokens, do_sample=False, use_cache=True, pad_token_id=self.pad
        )
        if self._options.compile:
            compiled = transformers.CompileConfig(mode=self._options.compile, fullgraph=False)
            # Transformers compiles only for GPUs unless this attribute is set.
            compiled._compile_all_devices = True  # noqa: SLF001  (it has no public one)
            how.compile_config = compiled
            how.cache_implementation = "static"  # compiled code needs a cache at a fixed address
        return how


def devices_of(gpus: int) -> list[Any]:
    """Return the first `gpus` GPUs, or the CPU `gpus` times if there is no GPU.

    Raises `SystemExit` if the host has fewer GPUs.
    """
    if not torch.cuda.is_available():
        return [torch.device("cpu")] * gpus
    if torch.cuda.device_count() < gpus:
        raise SystemExit(f"--gpus {gpus}: this host has {torch.cuda.device_count()}")
    return [torch.device("cuda", number) for number in range(gpus)]


def load(options: argparse.Namespace, devices: list[Any]) -> Any:
    """Load the model; without weight files, create random weights of its shape."""
    dtype = getattr(torch, options.dtype)
    told = {"dtype": dtype, "attn_implementation": options.attention}
    family = transformers.AutoModelForCausalLM
    if any(Path(options.model).glob("*.safetensors")):
        model = family.from_pretrained(options.model, **told)
    else:
        config = transformers.AutoConfig.from_pretrained(options.model)
        model = _random(family, config, devices, told)
    if options.nf4:
        _quantize(model, dtype)
    return spread_layers(model, devices).eval()


def _random(family: Any, config: Any, devices: list[Any], told: dict[str, Any]) -> Any:
    """Create each layer on its own device, so that no device needs to hold all layers."""
    if len(devices) == 1:
        with devices[0]:
            return family.from_config(config, **told)
    depth, config.num_hidden_layers = config.num_hidden_layers, 1
    with devices[0]:
        model = family.from_config(config, **told)
    layers, made = model.get_decoder().layers, model.config
    made.num_hidden_layers = depth
    for number in range(1, depth):
        with device_of(number, depth, devices):
            layers.append(type(layers[0])(made, number).to(told["dtype"]))
    return model


def spread_layers(model: Any, devices: list[Any]) -> Any:
    """Spread the layers evenly over the devices; all other modules go to the first device.

    The arguments of each layer are moved to its device when it is called.
    """
    if len(devices) == 1:
        return model.to(devices[0])
    decoder = model.get_decoder()
    layers, decoder.layers = decoder.layers, torch.nn.ModuleList()
    model.to(devices[0])
    decoder.layers = layers
    for number, layer in enumerate(layers):
        _stand(layer, device_of(number, len(layers), devices))
    _stand(decoder.norm, devices[0])
    return model


def device_of(number: int, depth: int, devices: list[Any]) -> Any:
    return devices[number * len(devices) // depth]


def _stand(module: Any, device: Any) -> None:
    def follow(_: Any, words: Any, named: Any) -> Any:
        return torch.utils._pytree.tree_map_only(  # noqa: SLF001  (it has no public one)
            torch.Tensor, lambda item: item.to(device), (words, named)
        )

    module.to(device).register_forward_pre_hook(follow, with_kwargs=True)


def _quantize(model: Any, dtype: Any) -> None:
    """Replace every linear layer except `lm_head` by NF4, packed on the move to the GPU."""
    import bitsandbytes  # noqa: PLC0415  (not in every environment)

    for name, layer in list(model.named_modules()):
        if not isinstance(layer, torch.nn.Linear) or name == "lm_head":
            continue
        packed = bitsandbytes.nn.Linear4bit(
            layer.in_features, layer.out_features, bias=layer.bias is not None,
            compute_dtype=dtype, quant_type="nf4",
        )  # fmt: skip
        packed.weight = bitsandbytes.nn.Params4bit(
            layer.weight.data, requires_grad=False, quant_type="nf4"
        )
        packed.bias = layer.bias
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, packed)


class _Streamer(transformers.generation.BaseStreamer):
    """Streamer that puts each row's new token into the queue of its request."""

    def __init__(self, batch: list[NaiveJob], ends: set[int]) -> None:
        self._batch, self._ends = batch, ends
        self._prompted = False

    def put(self, value: Any) -> None:
        if not self._prompted:  # the first call has the prompts
            self._prompted = True
            return
        for job, token in zip(self._batch, value.tolist(), strict=True):
            if job.ended:
                continue
            job.made += 1
            job.put(token)
            job.ended = job.made >= job.tokens or (token in self._ends and not job.ignore_eos)
            if job.ended:
                job.put(None)

    def end(self) -> None:
        """Do nothing: `put` ends each row."""


class _Ends(transformers.StoppingCriteria):
    """Criterion that stops the batch when the streamer, which runs first, has ended all rows."""

    def __init__(self, batch: list[NaiveJob]) -> None:
        self._batch = batch

    def __call__(self, ids: Any, *_: Any, **__: Any) -> Any:
        over = all(job.ended for job in self._batch)
        return torch.full((ids.shape[0],), over, device=ids.device)


def application(engine: NaiveEngine, name: str) -> fastapi.FastAPI:
    app = fastapi.FastAPI()

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model"}]}

    @app.post("/v1/completions", response_model=None)
    async def completions(asked: dict[str, Any]) -> JSONResponse | StreamingResponse:
        prompt = asked.get("prompt")
        ids = engine.tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt
        if not ids:
            return JSONResponse({"error": {"message": "no prompt"}}, status_code=400)
        loop = asyncio.get_running_loop()
        tokens = int(asked.get("max_tokens") or 16)
        job = NaiveJob(ids, tokens, bool(asked.get("ignore_eos")), asyncio.Queue(), loop)
        engine.jobs.put(job)
        if asked.get("stream"):
            return StreamingResponse(stream(engine, job, name), media_type="text/event-stream")
        text, failed = "", None
        while (item := await job.out.get()) is not None:
            if isinstance(item, Exception):
                failed = str(item)
                break
            text += engine.tokenizer.decode([item])
        if failed is not None:
            return JSONResponse({"error": {"message": failed}}, status_code=500)
        choice = {"index": 0, "text": text, "finish_reason": reason(job)}
        body = {"object": "text_completion", "model": name, "choices": [choice]}
        return JSONResponse({**body, "usage": usage(job)})

    return app


async def stream(engine: NaiveEngine, job: NaiveJob, name: str) -> AsyncIterator[str]:
    """Yield an event per token, then the usage, then `[DONE]`."""
    head = {"object": "text_completion", "model": name}
    while (item := await job.out.get()) is not None:
        if isinstance(item, Exception):
            raise item
        choice = {"index": 0, "text": engine.tokenizer.decode([item]), "finish_reason": None}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage(job)})}\n\n"
    yield "data: [DONE]\n\n"


def reason(job: NaiveJob) -> str:
    return "length" if job.made >= job.tokens else "stop"


def usage(job: NaiveJob) -> dict[str, int]:
    total = len(job.prompt) + job.made
    return {"prompt_tokens": len(job.prompt), "completion_tokens": job.made, "total_tokens": total}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", default="naive")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--attention", default=EAGER, help="eager, sdpa, flash_attention_2")
    parser.add_argument("--compile", help="a mode of torch.compile")
    parser.add_argument("--nf4", action="store_true", help="4-bit weights by bitsandbytes")
    parser.add_argument("--gpus", type=int, default=1, help="that the layers are spread over")
    parser.add_argument("--batch", type=int, default=1, help="requests that are answered together")
    parser.add_argument("--wait-s", type=float, default=0.05, help="for a batch to fill")
    options = parser.parse_args(arguments)
    app = application(NaiveEngine(options), options.served_model_name)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
