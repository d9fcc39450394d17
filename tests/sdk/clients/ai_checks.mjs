// A program of the Vercel AI SDK's users, with the providers of OpenAI, OpenAI-compatible services
// and Anthropic: told as JSON.
//
//     node ai_checks.mjs    reads OPENAI_BASE_URL, OPENAI_API_KEY and ANTHROPIC_API_KEY
//
// Nothing of the product is imported. `usage` of a check is what the SDK says was used: input and
// output tokens of each answer.

import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const ASK = "Name a machine.";
const WRONG = `gw_0000000000000000_${"0".repeat(64)}`;
const Part = z.object({ name: z.string(), count: z.number().int() });
const baseURL = process.env.OPENAI_BASE_URL;

const openai = (apiKey = process.env.OPENAI_API_KEY) => createOpenAI({ baseURL, apiKey });
const compatible = (apiKey = process.env.OPENAI_API_KEY) =>
  createOpenAICompatible({
    name: "gateway", baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true,
  });
const anthropic = (apiKey = process.env.ANTHROPIC_API_KEY) => createAnthropic({ baseURL, apiKey });

const used = (...usages) => usages.map((usage) => [usage.inputTokens, usage.outputTokens]);

async function whole(model) {
  const found = await generateText({ model, prompt: ASK, maxOutputTokens: 12, maxRetries: 0 });
  return { text: found.text, finish: found.finishReason, usage: used(found.usage) };
}

async function streamed(model) {
  const found = streamText({ model, prompt: ASK, maxOutputTokens: 12, maxRetries: 0 });
  const pieces = [];
  for await (const piece of found.textStream) pieces.push(piece);
  return { text: pieces.join(""), chunks: pieces.length, usage: used(await found.usage) };
}

// The model is made to call in the first step, the SDK runs the tool, and the model goes on.
async function tools(model) {
  const calls = [];
  const weather = tool({
    description: "Weather of a town",
    inputSchema: z.object({ town: z.string(), days: z.number().int() }),
    execute: async (given) => {
      calls.push(given);
      return `rain in ${given.town}`;
    },
  });
  const found = await generateText({
    model, prompt: ASK, maxOutputTokens: 100, maxRetries: 0, tools: { weather },
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "auto" }),
  });
  const usages = found.steps.map((step) => step.usage);
  return { arguments: calls[0], text: found.text, usage: used(...usages) };
}

async function structured(model) {
  const output = Output.object({ schema: Part });
  const found = await generateText({ model, prompt: "A part?", output, maxRetries: 0 });
  return { document: found.output, usage: used(found.usage) };
}

async function embeddings(model) {
  const found = await embedMany({ model, values: ["a machine", "a ledger"], maxRetries: 0 });
  const usage = [[found.usage.tokens, 0]];
  return { sizes: found.embeddings.map((one) => one.length), usage };
}

async function refused(model) {
  try {
    await generateText({ model, prompt: ASK, maxRetries: 0 });
  } catch (error) {
    return { raised: error.name, status: error.statusCode ?? null };
  }
  return { raised: null };
}

const kinds = {
  chat: (key) => openai(key).chat,
  responses: (key) => openai(key),
  compatible: (key) => compatible(key),
  anthropic: (key) => anthropic(key),
};

const checks = {
  embeddings: () => embeddings(openai().embedding("embed")),
  compatible_embeddings: () => embeddings(compatible().textEmbeddingModel("embed")),
};
for (const [name, made] of Object.entries(kinds)) {
  for (const check of [whole, streamed, tools, structured]) {
    checks[`${name}_${check.name}`] = () => check(made()("chat"));
  }
  checks[`${name}_bad_key`] = () => refused(made(WRONG)("chat"));
  checks[`${name}_unknown_model`] = () => refused(made()("nowhere"));
}

globalThis.AI_SDK_LOG_WARNINGS = false; // they go to standard output
const found = { versions: {} };
for (const name of ["ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic"]) {
  const text = readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8");
  found.versions[name] = JSON.parse(text).version;
}
for (const [name, check] of Object.entries(checks)) {
  try {
    found[name] = await check();
  } catch (error) { // one broken check must not hide the others
    found[name] = { failed: String(error.stack).slice(0, 1500) };
  }
}
console.log(JSON.stringify(found));
