"""Agno, Haystack, Mirascope, smolagents and Strands with a tool, streams and documents."""

# ruff: noqa: PLC0415  (a package that is broken must not hide what the others say)

import asyncio
import os

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("AGNO_TELEMETRY", "false")

from loop_told import ASK, BASE_URL, KEY, ROOT, looped, tell, weather
from pydantic import BaseModel


class Part(BaseModel):
    """A part of a machine."""

    name: str
    count: int


# ---------------------------------------------------------------- Agno


def agno_agent(kind: str, **options):
    from agno.agent import Agent
    from agno.models.anthropic import Claude
    from agno.models.openai import OpenAIChat, OpenAIResponses

    if kind == "claude":
        made = Claude(id="loop", api_key=KEY, client_params={"base_url": ROOT})
    else:
        made = {"chat": OpenAIChat, "responses": OpenAIResponses}[kind](
            "loop", api_key=KEY, base_url=BASE_URL
        )
    return Agent(model=made, telemetry=False, **options)


def agno_loop(kind: str) -> dict:
    answer = agno_agent(kind, tools=[weather]).run(ASK)
    return looped(answer.content, [answer.metrics.input_tokens, answer.metrics.output_tokens])


def agno_chat() -> dict:
    return agno_loop("chat")


def agno_responses() -> dict:
    return agno_loop("responses")


def agno_claude() -> dict:
    return agno_loop("claude")


def agno_stream() -> dict:
    events = agno_agent("chat", tools=[weather]).run(ASK, stream=True)
    return looped("".join(event.content or "" for event in events if event.event == "RunContent"))


def agno_document() -> dict:
    answer = agno_agent("chat", output_schema=Part).run("A part?")
    return {"document": answer.content.model_dump()}


# ---------------------------------------------------------------- Haystack


def haystack_agent(kind):
    from haystack.components.agents import Agent
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    made = kind(model="loop", api_key=Secret.from_token(KEY), api_base_url=BASE_URL)
    return Agent(chat_generator=made, tools=[create_tool_from_function(weather)])


def haystack_run(kind) -> dict:
    from haystack.dataclasses import ChatMessage

    answer = haystack_agent(kind).run(messages=[ChatMessage.from_user(ASK)])
    return looped(answer["messages"][-1].text)


def haystack_chat() -> dict:
    from haystack.components.generators.chat import OpenAIChatGenerator

    return haystack_run(OpenAIChatGenerator)


def haystack_responses() -> dict:
    from haystack.components.generators.chat import OpenAIResponsesChatGenerator

    return haystack_run(OpenAIResponsesChatGenerator)


def haystack_embeddings() -> dict:
    from haystack.components.embedders import OpenAITextEmbedder
    from haystack.utils import Secret

    made = OpenAITextEmbedder(
        api_key=Secret.from_token(KEY), api_base_url=BASE_URL, model="text-embedding-3-small"
    )
    return {"vector": made.run("a machine")["embedding"]}


# ---------------------------------------------------------------- Mirascope


def mirascope_chat() -> dict:
    from mirascope import llm

    llm.register_provider("openai", scope="openai/", api_key=KEY, base_url=BASE_URL)

    @llm.tool
    def weather_of(town: str) -> str:
        """Weather of a town."""
        return weather(town)

    @llm.call("openai/loop:completions", tools=[weather_of])
    def ask():
        return ASK

    answer = ask()
    while answer.tool_calls:
        answer = answer.resume(answer.execute_tools())
    return looped(answer.text())


def mirascope_responses() -> dict:
    from mirascope import llm

    llm.register_provider("openai", scope="openai/", api_key=KEY, base_url=BASE_URL)

    @llm.tool
    def weather_of(town: str) -> str:
        """Weather of a town."""
        return weather(town)

    @llm.call("openai/loop:responses", tools=[weather_of])
    def ask():
        return ASK

    answer = ask()
    while answer.tool_calls:
        answer = answer.resume(answer.execute_tools())
    return looped(answer.text())


def mirascope_document() -> dict:
    from mirascope import llm

    llm.register_provider("openai", scope="openai/", api_key=KEY, base_url=BASE_URL)

    @llm.call("openai/loop:completions", format=Part)
    def ask():
        return "A part?"

    return {"document": ask().parse().model_dump()}


# ---------------------------------------------------------------- smolagents


def smolagents_tools() -> dict:
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    made = OpenAIServerModel(model_id="loop", api_base=BASE_URL, api_key=KEY)
    agent = ToolCallingAgent(tools=[tool(weather)], model=made, max_steps=4)
    return looped(agent.run(ASK))


# ---------------------------------------------------------------- Strands


def strands_run(model) -> dict:
    from strands import Agent, tool

    agent = Agent(model=model, tools=[tool(weather)], callback_handler=None)
    answer = agent(ASK)
    used = answer.metrics.accumulated_usage
    return looped(answer, [used["inputTokens"], used["outputTokens"]])


def strands_chat() -> dict:
    from strands.models.openai import OpenAIModel

    return strands_run(
        OpenAIModel(client_args={"api_key": KEY, "base_url": BASE_URL}, model_id="loop")
    )


def strands_anthropic() -> dict:
    from strands.models.anthropic import AnthropicModel

    made = AnthropicModel(
        client_args={"api_key": KEY, "base_url": ROOT}, model_id="loop", max_tokens=500
    )
    return strands_run(made)


def strands_responses() -> dict:
    from strands.models.openai_responses import OpenAIResponsesModel

    return strands_run(
        OpenAIResponsesModel(client_args={"api_key": KEY, "base_url": BASE_URL}, model_id="loop")
    )


async def strands_document() -> dict:
    from strands import Agent
    from strands.models.openai import OpenAIModel

    made = OpenAIModel(client_args={"api_key": KEY, "base_url": BASE_URL}, model_id="loop")
    answer = await asyncio.wait_for(
        Agent(model=made, callback_handler=None).invoke_async(
            "A part?", structured_output_model=Part
        ),
        60,
    )
    return {"document": answer.structured_output.model_dump()}


# ---------------------------------------------------------------- CrewAI


def crewai_chat() -> dict:
    os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["CREWAI_TRACING_ENABLED"] = "false"
    os.environ["OTEL_SDK_DISABLED"] = os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    made = LLM(model="openai/gpt-4o-mini", base_url=BASE_URL, api_key=KEY)
    agent = Agent(
        role="reporter",
        goal="tell",
        backstory="none",
        llm=made,
        tools=[tool("weather")(weather)],
        verbose=False,
    )
    task = Task(description=ASK, expected_output="one line", agent=agent)
    answer = Crew(agents=[agent], tasks=[task], verbose=False).kickoff()
    return looped(answer, [answer.token_usage.prompt_tokens, answer.token_usage.completion_tokens])


if __name__ == "__main__":
    tell(
        agno_chat, agno_responses, agno_claude, agno_stream, agno_document,
        haystack_chat, haystack_responses, haystack_embeddings,
        mirascope_chat, mirascope_responses, mirascope_document, smolagents_tools,
        strands_chat, strands_anthropic, strands_responses, strands_document, crewai_chat,
    )  # fmt: skip
