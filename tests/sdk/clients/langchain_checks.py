"""A program of LangChain's users, with OpenAI's and Anthropic's models: told as JSON.

    python langchain_checks.py    reads OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL and
                                  ANTHROPIC_API_KEY, and UNTOLD_KEY for checks without usage

Nothing of the product is imported. `usage` of a check is what the library says was used: input and
output tokens of each answer.
"""

import json
import os
import traceback
from importlib.metadata import version

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

ASK = "Name a machine."
WRONG = "gw_0000000000000000_" + "0" * 64


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


@tool
def weather(town: str, days: int) -> str:
    """Weather of a town."""
    return f"rain in {town} for {days} days"


def openai(**settings) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "chat", "max_tokens": 12, "max_retries": 0, **settings})


def anthropic(**settings) -> ChatAnthropic:
    return ChatAnthropic(**{"model": "chat", "max_tokens": 12, "max_retries": 0, **settings})


def used(*messages) -> list[list[int]]:
    found = [message.usage_metadata for message in messages]
    return [[usage["input_tokens"], usage["output_tokens"]] for usage in found]


def whole(model) -> dict:
    message = model.invoke(ASK)
    return {"text": message.text, "usage": used(message)}


def streamed(model) -> dict:
    chunks = list(model.stream(ASK))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return {"text": total.text, "chunks": len(chunks), "usage": used(total)}


def tools(model, choice: str) -> dict:
    """The model calls, the program runs the tool, the model goes on."""
    called = model.bind_tools([weather], tool_choice=choice).invoke(ASK)
    (call,) = called.tool_calls
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
    after = model.bind_tools([weather]).invoke([("user", ASK), called, result])
    found = {"name": call["name"], "arguments": call["args"], "text": after.text}
    return {**found, "usage": used(called, after)}


def structured(model, **options) -> dict:
    answer = model.with_structured_output(Part, include_raw=True, **options).invoke("A part?")
    return {"document": answer["parsed"].model_dump(), "usage": used(answer["raw"])}


def embeddings() -> dict:
    """Texts as they are: the tokens of OpenAI's own models would have to be fetched first."""
    key = os.environ["UNTOLD_KEY"]
    made = OpenAIEmbeddings(model="embed", api_key=key, check_embedding_ctx_length=False)
    return {
        "sizes": [
            len(embed_document)
            for embed_document in made.embed_documents(["a machine", "a ledger"])
        ]
    }


def refused(model) -> dict:
    try:
        model.invoke(ASK)
    except Exception as error:  # noqa: BLE001  (which one it is, is what is told)
        return {"raised": type(error).__name__, "status": getattr(error, "status_code", None)}
    return {"raised": None}


LONG = {"max_tokens": 100}
CHECKS = {
    "whole": lambda: whole(openai()),
    "streamed": lambda: streamed(openai(stream_usage=True)),
    "tools": lambda: tools(openai(**LONG), "required"),
    "structured": lambda: structured(openai(**LONG), method="json_schema"),
    "embeddings": embeddings,
    "bad_key": lambda: refused(openai(api_key=WRONG)),
    "unknown_model": lambda: refused(openai(model="nowhere")),
    "responses_whole": lambda: whole(openai(use_responses_api=True)),
    "responses_streamed": lambda: streamed(openai(use_responses_api=True)),
    "responses_tools": lambda: tools(openai(use_responses_api=True, **LONG), "required"),
    "anthropic_whole": lambda: whole(anthropic()),
    "anthropic_streamed": lambda: streamed(anthropic()),
    "anthropic_tools": lambda: tools(anthropic(**LONG), "any"),
    "anthropic_structured": lambda: structured(anthropic(**LONG)),
    "anthropic_bad_key": lambda: refused(anthropic(api_key=WRONG)),
    "anthropic_unknown_model": lambda: refused(anthropic(model="nowhere")),
}


def main() -> None:
    found = {"versions": {n: version(n) for n in ("langchain-openai", "langchain-anthropic")}}
    for name, check in CHECKS.items():
        try:
            found[name] = check()
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[name] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
