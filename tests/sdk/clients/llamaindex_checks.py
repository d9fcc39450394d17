"""A program of LlamaIndex's users: told as JSON.

    python llamaindex_checks.py    reads OPENAI_BASE_URL and OPENAI_API_KEY, and
                                   UNTOLD_KEY for checks without usage

Nothing of the product is imported. `usage` of a check is what the answers said was used.
"""

import json
import os
import traceback
from importlib.metadata import version

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

ASK = "Name a machine."
MESSAGES = [ChatMessage(role="user", content=ASK)]
WRONG = "gw_0000000000000000_" + "0" * 64
UNTOLD = {"api_key": os.environ["UNTOLD_KEY"]}
BASE = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


def weather(town: str, days: int) -> str:
    """Weather of a town."""
    return f"rain in {town} for {days} days"


def model(**settings) -> OpenAILike:
    settings = {
        "model": "chat", "is_chat_model": True, "is_function_calling_model": True,
        "max_tokens": 12, "max_retries": 0, **BASE, **settings,
    }  # fmt: skip
    return OpenAILike(**settings)


def used(*answers) -> list[list[int]]:
    found = [answer.raw.usage for answer in answers]
    return [[usage.prompt_tokens, usage.completion_tokens] for usage in found]


def whole() -> dict:
    answer = model().chat(MESSAGES)
    return {"text": answer.message.content, "usage": used(answer)}


def streamed() -> dict:
    options = {"stream_options": {"include_usage": True}}
    pieces = list(model(additional_kwargs=options).stream_chat(MESSAGES))
    return {"text": pieces[-1].message.content, "chunks": len(pieces), "usage": used(pieces[-1])}


def completed() -> dict:
    """The older API, for models that only go on with a text."""
    answer = model(is_chat_model=False, is_function_calling_model=False).complete("Once upon")
    return {"text": answer.text, "usage": used(answer)}


def tools() -> dict:
    """The model calls, the program runs the tool, the model goes on."""
    tool = FunctionTool.from_defaults(weather)
    asked = model(max_tokens=100)
    called = asked.chat_with_tools([tool], user_msg=ASK, tool_required=True)
    (call,) = asked.get_tool_calls_from_response(called)
    told = ChatMessage(
        role="tool",
        content=str(tool(**call.tool_kwargs)),
        additional_kwargs={"tool_call_id": call.tool_id},
    )
    after = asked.chat([*MESSAGES, called.message, told])
    found = {"name": call.tool_name, "arguments": call.tool_kwargs, "text": after.message.content}
    return {**found, "usage": used(called, after)}


def structured() -> dict:
    answer = model(max_tokens=100, should_use_structured_outputs=True, **UNTOLD)
    found = answer.as_structured_llm(Part).chat(MESSAGES)
    return {"document": found.raw.model_dump()}


def embeddings() -> dict:
    made = OpenAILikeEmbedding(model_name="embed", **{**BASE, **UNTOLD})
    return {
        "sizes": [len(item) for item in made.get_text_embedding_batch(["a machine", "a ledger"])]
    }


def refused(**settings) -> dict:
    try:
        model(**settings).chat(MESSAGES)
    except Exception as error:  # noqa: BLE001  (which one it is, is what is told)
        return {"raised": type(error).__name__, "status": getattr(error, "status_code", None)}
    return {"raised": None}


CHECKS = {
    "whole": whole,
    "streamed": streamed,
    "completed": completed,
    "tools": tools,
    "structured": structured,
    "embeddings": embeddings,
    "bad_key": lambda: refused(api_key=WRONG),
    "unknown_model": lambda: refused(model="nowhere"),
}


def main() -> None:
    found = {"versions": {"llama-index-core": version("llama-index-core")}}
    for name, check in CHECKS.items():
        try:
            found[name] = check()
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[name] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
