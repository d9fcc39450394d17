"""Programs of instructor, pydantic-ai and openai-agents: told as JSON.

    python agents_checks.py    reads OPENAI_BASE_URL and OPENAI_API_KEY, and UNTOLD_KEY for
                               checks without usage

Nothing of the product is imported. `usage` of a check is what the library says was used by all its
answers together: an agent asks more than once, and instructor adds up too.
"""

import asyncio
import json
import os
import traceback
from importlib.metadata import version

import agents
import instructor
import openai
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

ASK = "Name a machine."
WRONG = "gw_0000000000000000_" + "0" * 64


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


def weather(town: str, days: int) -> str:
    """Weather of a town."""
    return f"rain in {town} for {days} days"


# ---------------------------------------------------------------- instructor


def extracted(mode: instructor.Mode) -> dict:
    client = instructor.from_openai(openai.OpenAI(max_retries=0), mode=mode)
    part, answer = client.chat.completions.create_with_completion(
        model="chat", response_model=Part, messages=[{"role": "user", "content": "A part?"}]
    )
    usage = answer.usage
    used = [[usage.prompt_tokens, usage.completion_tokens]]
    return {"document": part.model_dump(), "usage": used}


def extracted_in_parts() -> dict:
    """The object while it comes."""
    plain = openai.OpenAI(api_key=os.environ["UNTOLD_KEY"], max_retries=0)
    client = instructor.from_openai(plain, mode=instructor.Mode.TOOLS)
    asked = [{"role": "user", "content": "A part?"}]
    made = client.chat.completions.create_partial
    parts = list(made(model="chat", response_model=Part, messages=asked))
    return {"document": parts[-1].model_dump(), "chunks": len(parts)}


# ---------------------------------------------------------------- pydantic-ai


def agent(kind, *, model: str = "chat", key: str | None = None, **options) -> Agent:
    """With a client of its own: each check has its own event loop."""
    client = openai.AsyncOpenAI(max_retries=0, **({"api_key": key} if key else {}))
    made = kind(model, provider=OpenAIProvider(openai_client=client))
    return Agent(made, **{"model_settings": {"max_tokens": 100}, **options})


def told(result) -> dict:
    usage = result.usage
    usage = usage() if callable(usage) else usage
    return {"usage": [[usage.input_tokens, usage.output_tokens]], "requests": usage.requests}


def ran(kind) -> dict:
    result = agent(kind).run_sync(ASK)
    return {"text": result.output, **told(result)}


def ran_streamed(kind) -> dict:
    async def run() -> dict:
        async with agent(kind).run_stream(ASK) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
            return {"text": "".join(pieces), "chunks": len(pieces), **told(result)}

    return asyncio.run(run())


def ran_structured(kind) -> dict:
    """The form of the answer is a tool that the model has to call."""
    result = agent(kind, output_type=Part).run_sync("A part?")
    return {"document": result.output.model_dump(), **told(result)}


def ran_tools(kind) -> dict:
    """Forced to call in the first turn only."""
    calls = []

    def noted(town: str, days: int) -> str:
        """Weather of a town."""
        calls.append({"town": town, "days": days})
        return weather(town, days)

    def settings(context) -> dict:
        return {"max_tokens": 100, "tool_choice": "auto" if calls else "required"}

    found = agent(kind, tools=[noted], model_settings=settings).run_sync(ASK)
    return {"arguments": calls[0], "text": found.output, **told(found)}


def ran_refused(kind, **changes) -> dict:
    try:
        agent(kind, **changes).run_sync(ASK)
    except ModelHTTPError as error:
        return {"raised": type(error).__name__, "status": error.status_code}
    return {"raised": None}


# ---------------------------------------------------------------- openai-agents


def openai_agent(kind, *, model: str = "chat", key: str | None = None, **options) -> agents.Agent:
    client = openai.AsyncOpenAI(max_retries=0, **({"api_key": key} if key else {}))
    settings = agents.ModelSettings(
        max_tokens=2000, include_usage=True, tool_choice="required" if "tools" in options else None
    )
    made = kind(model=model, openai_client=client)
    return agents.Agent(name="helper", model=made, model_settings=settings, **options)


def said(result) -> dict:
    usage = result.context_wrapper.usage
    return {
        "text": str(result.final_output),
        "usage": [[usage.input_tokens, usage.output_tokens]],
        "requests": usage.requests,
    }


def helped(kind) -> dict:
    return said(agents.Runner.run_sync(openai_agent(kind), ASK))


def helped_streamed(kind) -> dict:
    async def run() -> dict:
        result = agents.Runner.run_streamed(openai_agent(kind), ASK)
        events = [event.data async for event in result.stream_events() if hasattr(event, "data")]
        texts = [
            each_event.delta
            for each_event in events
            if isinstance(each_event, ResponseTextDeltaEvent)
        ]
        return {**said(result), "deltas": "".join(texts), "chunks": len(texts)}

    return asyncio.run(run())


def helped_tools(kind) -> dict:
    """The library forces a call once, runs the tool and lets the model go on."""
    calls = []

    @agents.function_tool
    def weather_of(town: str, days: int) -> str:
        """Weather of a town."""
        calls.append({"town": town, "days": days})
        return weather(town, days)

    found = said(agents.Runner.run_sync(openai_agent(kind, tools=[weather_of]), ASK))
    return {"arguments": calls[0], **found}


def helped_structured(kind) -> dict:
    result = agents.Runner.run_sync(openai_agent(kind, output_type=Part), "A part?")
    return {"document": result.final_output.model_dump(), "usage": said(result)["usage"]}


def helped_refused(kind, **changes) -> dict:
    try:
        agents.Runner.run_sync(openai_agent(kind, **changes), ASK)
    except openai.APIStatusError as error:
        return {"raised": type(error).__name__, "status": error.status_code}
    return {"raised": None}


CHAT, RESPONSES = agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel


def checks() -> dict:
    agents.set_tracing_disabled(disabled=True)
    models = {"": OpenAIChatModel, "responses_": OpenAIResponsesModel}
    found = {
        "instructor_tools": lambda: extracted(instructor.Mode.TOOLS),
        "instructor_json": lambda: extracted(instructor.Mode.JSON_SCHEMA),
        "instructor_partial": extracted_in_parts,
        "pydantic_bad_key": lambda: ran_refused(OpenAIChatModel, key=WRONG),
        "pydantic_unknown_model": lambda: ran_refused(OpenAIChatModel, model="nowhere"),
        "agents_bad_key": lambda: helped_refused(CHAT, key=WRONG),
        "agents_unknown_model": lambda: helped_refused(RESPONSES, model="nowhere"),
    }
    for name, model in models.items():
        for check in (ran, ran_streamed, ran_structured, ran_tools):
            found[f"pydantic_{name}{check.__name__}"] = lambda check=check, model=model: check(
                model
            )
    for name, kind in (("", CHAT), ("responses_", RESPONSES)):
        for check in (helped, helped_streamed, helped_structured, helped_tools):
            found[f"agents_{name}{check.__name__}"] = lambda check=check, kind=kind: check(kind)
    return found


def main() -> None:
    names = ("instructor", "pydantic-ai-slim", "openai-agents")
    found = {"versions": {name: version(name) for name in names}}
    for name, check in checks().items():
        try:
            found[name] = check()
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[name] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
