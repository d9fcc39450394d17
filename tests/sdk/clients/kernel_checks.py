"""Agent Framework, Semantic Kernel and AutoGen with a tool, streams and embeddings."""

# ruff: noqa: PLC0415  (a package that is broken must not hide what the others say)

from typing import Annotated

import openai
from loop_told import ASK, BASE_URL, KEY, looped, tell, weather
from pydantic import BaseModel


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


# ---------------------------------------------------------------- Agent Framework


def framework_client(kind: str):
    from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

    made = OpenAIChatCompletionClient if kind == "chat" else OpenAIChatClient
    return made(model="loop", api_key=KEY, base_url=BASE_URL)


async def framework_run(kind: str, **options) -> dict:
    from agent_framework import Agent

    answer = await Agent(framework_client(kind), tools=[weather], **options).run(ASK)
    used = answer.usage_details
    return looped(answer.text, [used["input_token_count"], used["output_token_count"]])


async def framework_chat() -> dict:
    return await framework_run("chat")


async def framework_responses() -> dict:
    """It goes on from the stored answer."""
    return await framework_run("responses")


async def framework_unstored() -> dict:
    return await framework_run("responses", default_options={"store": False})


async def framework_session() -> dict:
    """Two questions of one session."""
    from agent_framework import Agent

    agent = Agent(framework_client("responses"), tools=[weather])
    session = agent.create_session()
    await agent.run(ASK, session=session)
    return looped((await agent.run("And tomorrow?", session=session)).text)


async def framework_stream() -> dict:
    from agent_framework import Agent

    agent = Agent(framework_client("responses"), tools=[weather])
    stream = agent.run(ASK, stream=True)
    pieces = [piece async for piece in stream]
    answer = await stream.get_final_response()  # it replaces what came in pieces by the whole
    return looped(answer.text if len(pieces) > 3 else "not a stream")


# ---------------------------------------------------------------- Semantic Kernel


def plugin():
    from semantic_kernel.functions import kernel_function

    class WeatherPlugin:
        @kernel_function(description="Weather of a town")
        def weather(self, town: Annotated[str, "its name"]) -> str:
            return weather(town)

    return WeatherPlugin()


def opened() -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=KEY, base_url=BASE_URL, max_retries=0)


async def kernel_chat() -> dict:
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

    made = OpenAIChatCompletion(ai_model_id="loop", async_client=opened())
    agent = ChatCompletionAgent(service=made, name="reporter", plugins=[plugin()])
    return looped((await agent.get_response(ASK)).message)


async def kernel_responses() -> dict:
    from semantic_kernel.agents import OpenAIResponsesAgent

    agent = OpenAIResponsesAgent(
        ai_model_id="loop", client=opened(), name="reporter", plugins=[plugin()]
    )
    return looped((await agent.get_response(ASK)).message)


async def kernel_stream() -> dict:
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

    made = OpenAIChatCompletion(ai_model_id="loop", async_client=opened())
    agent = ChatCompletionAgent(service=made, name="reporter", plugins=[plugin()])
    return looped("".join([str(piece.message) async for piece in agent.invoke_stream(ASK)]))


async def kernel_embeddings() -> dict:
    from semantic_kernel.connectors.ai.open_ai import OpenAITextEmbedding

    made = OpenAITextEmbedding(ai_model_id="text-embedding-3-small", async_client=opened())
    return {
        "vector": [float(number) for number in (await made.generate_embeddings(["a machine"]))[0]]
    }


# ---------------------------------------------------------------- AutoGen


def autogen_agent(**options):
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "family": "unknown",
        "structured_output": True,
    }
    made = OpenAIChatCompletionClient(model="loop", api_key=KEY, base_url=BASE_URL, model_info=info)
    return AssistantAgent("reporter", model_client=made, **options)


async def autogen_chat() -> dict:
    answer = await autogen_agent(tools=[weather], reflect_on_tool_use=True).run(task=ASK)
    used = [message.models_usage for message in answer.messages if message.models_usage]
    return looped(
        answer.messages[-1].content,
        [
            sum(usage.prompt_tokens for usage in used),
            sum(usage.completion_tokens for usage in used),
        ],
    )


async def autogen_stream() -> dict:
    agent = autogen_agent(tools=[weather], reflect_on_tool_use=True, model_client_stream=True)
    pieces = [event async for event in agent.run_stream(task=ASK)]
    return looped(
        "".join(
            piece.content
            for piece in pieces
            if type(piece).__name__ == "ModelClientStreamingChunkEvent"
        )
    )


async def autogen_document() -> dict:
    answer = await autogen_agent(output_content_type=Part).run(task="A part?")
    return {"document": answer.messages[-1].content.model_dump()}


if __name__ == "__main__":
    tell(
        framework_chat, framework_responses, framework_unstored, framework_session,
        framework_stream, kernel_chat, kernel_responses, kernel_stream, kernel_embeddings,
        autogen_chat, autogen_stream, autogen_document,
    )  # fmt: skip
