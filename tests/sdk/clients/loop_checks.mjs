// OpenAI's and Anthropic's SDK, the AI SDK, LangChain and OpenAI's agents for Node, at the majors
// after those of the ordinary suite: each with a tool, streams and documents, told as JSON.
//
//     node loop_checks.mjs    reads OPENAI_BASE_URL, OPENAI_API_KEY and ANTHROPIC_BASE_URL

import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatAnthropic } from "@langchain/anthropic";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import * as agents from "@openai/agents";
import { embedMany, generateText, Output, isStepCount, streamText, tool } from "ai";
import { createAgent } from "langchain";
import OpenAI from "openai";
import { z } from "zod";

const ASK = "What is the weather in Ghent?";
const baseURL = process.env.OPENAI_BASE_URL;
const root = process.env.ANTHROPIC_BASE_URL;
const keys = JSON.parse(process.env.LOOP_KEYS ?? "{}"); // one a check, so that each has its own rows
let apiKey = process.env.OPENAI_API_KEY;
const Part = z.object({ name: z.string(), count: z.number().int() });
const Town = z.object({ town: z.string() });
let towns = [];
const weather = async ({ town }) => {
  towns.push(town);
  return `rain in ${town}`;
};
const looped = (text, usage = null) => ({ text, towns, usage });

// ---------------------------------------------------------------- the AI SDK

const models = {
  chat: () => createOpenAI({ baseURL, apiKey }).chat("loop"),
  responses: () => createOpenAI({ baseURL, apiKey })("loop"),
  compatible: () => createOpenAICompatible({ name: "gateway", baseURL, apiKey, includeUsage: true })("loop"),
  anthropic: () => createAnthropic({ baseURL, apiKey })("loop"),
};
const tools = () => ({ weather: tool({ description: "Weather", inputSchema: Town, execute: weather }) });

async function aiLoop(model) {
  const found = await generateText({
    model, prompt: ASK, tools: tools(), stopWhen: isStepCount(4), maxRetries: 0,
  });
  const used = found.totalUsage ?? found.usage;
  return looped(found.text, [used.inputTokens, used.outputTokens]);
}

async function aiStream(model) {
  const found = streamText({
    model, prompt: ASK, tools: tools(), stopWhen: isStepCount(4), maxRetries: 0,
    onError: ({ error }) => { throw error; },
  });
  let text = "";
  for await (const piece of found.textStream) text += piece;
  const used = await (found.totalUsage ?? found.usage);
  return looped(text, [used.inputTokens, used.outputTokens]);
}

// Two questions of one conversation: the second sends back everything that the first came to.
async function aiTurns(model) {
  const first = await generateText({
    model, prompt: ASK, tools: tools(), stopWhen: isStepCount(4), maxRetries: 0,
  });
  const messages = [
    { role: "user", content: ASK }, ...(first.responseMessages ?? first.response.messages),
    { role: "user", content: "And tomorrow?" },
  ];
  const second = await generateText({ model, messages, maxRetries: 0 });
  return looped(second.text);
}

async function aiDocument(model) {
  const output = Output.object({ schema: Part });
  return { document: (await generateText({ model, prompt: "A part?", output, maxRetries: 0 })).output };
}

const checks = {
  ai_embeddings: async () => {
    const model = createOpenAI({ baseURL, apiKey }).embedding("text-embedding-3-small");
    return { vector: (await embedMany({ model, values: ["a machine"], maxRetries: 0 })).embeddings[0] };
  },
};
for (const [name, made] of Object.entries(models)) {
  checks[`ai_${name}_loop`] = () => aiLoop(made());
  checks[`ai_${name}_stream`] = () => aiStream(made());
  checks[`ai_${name}_turns`] = () => aiTurns(made());
  checks[`ai_${name}_document`] = () => aiDocument(made());
}

// ---------------------------------------------------------------- OpenAI's and Anthropic's SDK

const openai = () => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const described = {
  name: "weather", description: "Weather", parse: JSON.parse, function: weather,
  parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
};

checks.openai_tools = async () => {
  const runner = openai().chat.completions.runTools({
    model: "loop", messages: [{ role: "user", content: ASK }],
    tools: [{ type: "function", function: described }],
  });
  const text = await runner.finalContent();
  const used = await runner.totalUsage();
  return looped(text, [used.prompt_tokens, used.completion_tokens]);
};
checks.openai_responses = async () => {
  const client = openai();
  const { name, description, parameters } = described;
  const given = { model: "loop", tools: [{ type: "function", name, description, parameters, strict: false }] };
  const first = await client.responses.create({ ...given, input: ASK });
  const [call] = first.output.filter((item) => item.type === "function_call");
  const output = await weather(JSON.parse(call.arguments));
  const stream = client.responses.stream({
    ...given, previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output }],
  });
  const last = await stream.finalResponse();
  return looped(last.output_text, [
    first.usage.input_tokens + last.usage.input_tokens, first.usage.output_tokens + last.usage.output_tokens,
  ]);
};
checks.openai_embeddings = async () => {
  const found = await openai().embeddings.create({ model: "text-embedding-3-small", input: "a machine" });
  return { vector: found.data[0].embedding };
};
checks.anthropic_runner = async () => {
  const client = new Anthropic({ baseURL: root, apiKey, maxRetries: 0 });
  const { betaTool } = await import("@anthropic-ai/sdk/helpers/beta/json-schema");
  const made = betaTool({
    name: "weather", description: "Weather", inputSchema: described.parameters, run: weather,
  });
  const last = await client.beta.messages.toolRunner({
    model: "loop", max_tokens: 500, messages: [{ role: "user", content: ASK }], tools: [made],
  });
  return looped(last.content.map((block) => block.text ?? "").join(""));
};
checks.anthropic_stream = async () => {
  const client = new Anthropic({ baseURL: root, apiKey, maxRetries: 0 });
  const asked = { model: "loop", max_tokens: 500, messages: [{ role: "user", content: ASK }] };
  const last = await client.messages.stream(asked).finalMessage();
  return { plain: last.content[0].text };
};

// ---------------------------------------------------------------- LangChain, LangGraph

const langchains = {
  chat: () => new ChatOpenAI({ model: "loop", apiKey, configuration: { baseURL }, maxRetries: 0 }),
  responses: () => new ChatOpenAI({ model: "loop", apiKey, configuration: { baseURL }, maxRetries: 0, useResponsesApi: true }),
  anthropic: () => new ChatAnthropic({ model: "loop", apiKey, anthropicApiUrl: root, maxRetries: 0, maxTokens: 500 }),
};
for (const [name, made] of Object.entries(langchains)) {
  checks[`langchain_${name}_agent`] = async () => {
    const held = langchainTool(weather, { name: "weather", description: "Weather", schema: Town });
    const found = await createAgent({ model: made(), tools: [held] }).invoke({ messages: [{ role: "user", content: ASK }] });
    return looped(found.messages.at(-1).text);
  };
  checks[`langchain_${name}_document`] = async () => ({
    document: await made().withStructuredOutput(Part, { name: "Part" }).invoke("A part?"),
  });
}
checks.langchain_embeddings = async () => {
  const made = new OpenAIEmbeddings({ model: "text-embedding-3-small", apiKey, configuration: { baseURL } });
  return { vector: await made.embedQuery("a machine") };
};

// ---------------------------------------------------------------- OpenAI's agents

for (const [name, kind] of [["chat", agents.OpenAIChatCompletionsModel], ["responses", agents.OpenAIResponsesModel]]) {
  checks[`agents_${name}`] = async () => {
    agents.setTracingDisabled(true);
    const held = agents.tool({ name: "weather", description: "Weather", parameters: Town, execute: weather });
    const made = new agents.Agent({ name: "reporter", model: new kind(openai(), "loop"), tools: [held] });
    const found = await agents.run(made, ASK);
    const used = found.rawResponses.map((answer) => answer.usage);
    return looped(found.finalOutput, [
      used.reduce((sum, usage) => sum + usage.inputTokens, 0), used.reduce((sum, usage) => sum + usage.outputTokens, 0),
    ]);
  };
}

if (process.argv[2] === "--names") {
  console.log(JSON.stringify(Object.keys(checks)));
  process.exit(0);
}
globalThis.AI_SDK_LOG_WARNINGS = false; // they go to standard output
const found = {};
for (const [name, check] of Object.entries(checks)) {
  if (process.argv.length > 2 && !process.argv.slice(2).includes(name)) continue;
  towns = [];
  apiKey = keys[name] ?? process.env.OPENAI_API_KEY;
  try {
    found[name] = await check();
  } catch (error) { // one broken check must not hide the others
    found[name] = { failed: String(error.stack).slice(0, 1500) + String(error.responseBody ?? "") };
  }
}
console.log(JSON.stringify(found));
process.exit(0);
