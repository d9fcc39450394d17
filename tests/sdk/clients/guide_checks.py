"""LiteLLM as a client, DSPy, magentic, Outlines and guidance, with a tool and without."""

# ruff: noqa: PLC0415  (a package that is broken must not hide what the others say)

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would be fetched from afar

import openai
from loop_told import ASK, BASE_URL, KEY, ROOT, looped, tell, weather
from pydantic import BaseModel

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a town",
        "parameters": {
            "type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"],
        },
    },
}  # fmt: skip


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


# ---------------------------------------------------------------- LiteLLM


def litellm_loop(model: str, **options) -> dict:
    import json

    import litellm

    messages: list = [{"role": "user", "content": ASK}]
    totals = [0, 0]
    while True:
        answer = litellm.completion(
            model=model, messages=messages, api_key=KEY, tools=[TOOL], max_retries=0, **options
        )
        totals = [
            totals[0] + answer.usage.prompt_tokens,
            totals[1] + answer.usage.completion_tokens,
        ]
        said = answer.choices[0].message
        if not said.tool_calls:
            return looped(said.content, totals)
        messages.append(said.model_dump())
        for call in said.tool_calls:
            text = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def litellm_openai() -> dict:
    return litellm_loop("openai/loop", api_base=BASE_URL)


def litellm_hosted() -> dict:
    return litellm_loop("hosted_vllm/loop", api_base=BASE_URL)


def litellm_proxy() -> dict:
    return litellm_loop("litellm_proxy/loop", api_base=BASE_URL)


def litellm_azure() -> dict:
    return litellm_loop("azure/loop", api_base=ROOT, api_version="2024-10-21")


def litellm_anthropic() -> dict:
    return litellm_loop("anthropic/loop", api_base=ROOT, max_tokens=500)


def litellm_responses() -> dict:
    import litellm

    first = litellm.responses(model="openai/loop", input="hi", api_base=BASE_URL, api_key=KEY)
    second = litellm.responses(
        model="openai/loop",
        input="and",
        previous_response_id=first.id,
        api_base=BASE_URL,
        api_key=KEY,
    )
    return {"plain": second.output[-1].content[0].text}


def litellm_stream() -> dict:
    import litellm

    chunks = list(litellm.completion(
        model="openai/loop", messages=[{"role": "user", "content": ASK}], api_base=BASE_URL,
        api_key=KEY, stream=True, stream_options={"include_usage": True},
    ))  # fmt: skip
    return {
        "plain": "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    }


def litellm_embeddings() -> dict:
    import litellm

    answer = litellm.embedding(
        model="openai/text-embedding-3-small", input=["a machine"], api_base=BASE_URL, api_key=KEY
    )
    return {"vector": answer.data[0]["embedding"]}


# ---------------------------------------------------------------- DSPy


def dspy_model():
    import dspy

    return dspy.LM("openai/loop", api_base=BASE_URL, api_key=KEY, cache=False, num_retries=0)


def dspy_plain() -> dict:
    return {"plain": dspy_model()(ASK)[0]}


def dspy_responses() -> dict:
    import dspy

    made = dspy.LM(
        "openai/loop",
        api_base=BASE_URL,
        api_key=KEY,
        cache=False,
        num_retries=0,
        model_type="responses",
    )
    said = made(ASK)[0]
    return {"plain": said["text"] if isinstance(said, dict) else said}


def dspy_document() -> dict:
    import dspy

    with dspy.context(lm=dspy_model(), adapter=dspy.JSONAdapter()):
        found = dspy.Predict("question -> name: str, count: int")(question="A part?")
    return {"document": {"name": found.name, "count": found.count}}


# ---------------------------------------------------------------- magentic


def magentic_model():
    from magentic import OpenaiChatModel

    return OpenaiChatModel("loop", api_key=KEY, base_url=BASE_URL)


def magentic_chain() -> dict:
    from magentic import prompt_chain

    @prompt_chain(ASK, functions=[weather], model=magentic_model())
    def ask() -> str: ...

    return looped(ask())


def magentic_document() -> dict:
    from magentic import prompt

    @prompt("A part?", model=magentic_model())
    def ask() -> Part: ...

    return {"document": ask().model_dump()}


# ---------------------------------------------------------------- Outlines and guidance


def outlines_document() -> dict:
    import outlines

    made = outlines.from_openai(openai.OpenAI(api_key=KEY, base_url=BASE_URL), "loop")
    return {"document": Part.model_validate_json(made("A part?", Part)).model_dump()}


def outlines_vllm() -> dict:
    import outlines

    made = outlines.from_vllm(openai.OpenAI(api_key=KEY, base_url=BASE_URL), "loop")
    return {"plain": made(ASK)}


def guidance_chat() -> dict:
    from guidance import assistant, gen, models, user

    made = models.OpenAI("loop", api_key=KEY, base_url=BASE_URL, echo=False)
    with user():
        made += ASK
    with assistant():
        made += gen("answer")
    return {"plain": made["answer"]}


if __name__ == "__main__":
    tell(
        litellm_openai, litellm_hosted, litellm_proxy, litellm_azure, litellm_anthropic,
        litellm_responses, litellm_stream, litellm_embeddings, dspy_plain, dspy_responses,
        dspy_document, magentic_chain, magentic_document, outlines_document, outlines_vllm,
        guidance_chat,
    )  # fmt: skip
