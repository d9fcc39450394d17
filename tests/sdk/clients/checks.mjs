// The same checks with `openai` for Node, unchanged: told as JSON, judged by the test.
//
//     node checks.mjs        reads OPENAI_BASE_URL, OPENAI_API_KEY and POOR_KEY

import { readFileSync } from "node:fs";
import OpenAI from "openai";

const MODEL = "chat";
const ASK = [{ role: "user", content: "Name a machine." }];
const LONG = { max_tokens: 4000, ignore_eos: true };
const TOOL = {
  type: "function",
  function: {
    name: "weather",
    description: "Weather of a town",
    parameters: {
      type: "object",
      properties: { town: { type: "string" }, days: { type: "integer" } },
      required: ["town", "days"],
    },
  },
};
const SCHEMA = {
  type: "json_schema",
  json_schema: {
    name: "part",
    strict: true,
    schema: {
      type: "object",
      properties: { name: { type: "string" }, count: { type: "integer" } },
      required: ["name", "count"],
      additionalProperties: false,
    },
  },
};

const streamed = { model: MODEL, messages: ASK, max_tokens: 12, stream: true };
const forced = { model: MODEL, messages: ASK, tools: [TOOL], tool_choice: "required" };

const usageOf = ({ usage }) => ({
  prompt: usage.prompt_tokens,
  output: usage.completion_tokens ?? 0,
  total: usage.total_tokens,
});

async function read(chunks) {
  let text = "";
  const finishes = [];
  const usages = [];
  const objects = new Set();
  let empty = 0;
  for await (const chunk of chunks) {
    objects.add(chunk.object);
    empty += chunk.choices.length === 0;
    if (chunk.usage) usages.push(usageOf(chunk));
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      if (choice.finish_reason) finishes.push(choice.finish_reason);
    }
  }
  return { text, finishes, usages, objects: [...objects].sort(), chunks_without_choices: empty };
}

async function caught(call) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    return {
      raised: error.constructor.name,
      status: error.status ?? null,
      code: error.code ?? null,
      type: error.type ?? null,
      param: error.param ?? null,
      request_id: error.requestID ?? null,
    };
  }
  return { raised: null };
}

const refused = (client, changes = {}, options = {}) =>
  caught(() => client.chat.completions.create({ model: MODEL, messages: ASK, ...changes }, options));

const checks = {
  async chat(client) {
    const answer = await client.chat.completions.create({ model: MODEL, messages: ASK, max_tokens: 12 });
    const choice = answer.choices[0];
    return {
      object: answer.object,
      role: choice.message.role,
      text: choice.message.content,
      finish: choice.finish_reason,
      usage: usageOf(answer),
    };
  },
  async completion(client) {
    const answer = await client.completions.create({ model: MODEL, prompt: "Once upon", max_tokens: 9 });
    return { object: answer.object, text: answer.choices[0].text, usage: usageOf(answer) };
  },
  async stream(client) {
    return read(await client.chat.completions.create(streamed));
  },
  async stream_with_usage(client) {
    const stream_options = { include_usage: true };
    return read(await client.chat.completions.create({ ...streamed, stream_options }));
  },
  async stream_spilled(client) {
    return read(await client.chat.completions.create({ ...streamed, model: "spilled" }));
  },
  async tools(client) {
    const answer = await client.chat.completions.create(forced);
    const choice = answer.choices[0];
    const call = choice.message.tool_calls[0];
    return {
      finish: choice.finish_reason,
      id: call.id,
      type: call.type,
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    };
  },
  async tools_streamed(client) {
    let text = "";
    const names = [];
    const ids = [];
    let finish = null;
    for await (const chunk of await client.chat.completions.create({ ...forced, stream: true })) {
      for (const choice of chunk.choices) {
        finish = choice.finish_reason ?? finish;
        for (const call of choice.delta.tool_calls ?? []) {
          text += call.function?.arguments ?? "";
          if (call.function?.name) names.push(call.function.name);
          if (call.id) ids.push(call.id);
        }
      }
    }
    return { finish, names, ids, arguments: JSON.parse(text) };
  },
  async several(client) {
    const answer = await client.chat.completions.create({ model: MODEL, messages: ASK, n: 2, max_tokens: 8 });
    return { indexes: answer.choices.map((choice) => choice.index), usage: usageOf(answer) };
  },
  async json_schema(client) {
    const answer = await client.chat.completions.create({ model: MODEL, messages: ASK, response_format: SCHEMA });
    return { document: JSON.parse(answer.choices[0].message.content) };
  },
  async logprobs(client) {
    const answer = await client.chat.completions.create({
      model: MODEL,
      messages: ASK,
      max_tokens: 4,
      logprobs: true,
      top_logprobs: 2,
    });
    const found = answer.choices[0].logprobs.content;
    return { tokens: found.length, alternatives: found.map((each) => each.top_logprobs.length) };
  },
  async models(client) {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    return { ids };
  },
  async model(client) {
    const found = await client.models.retrieve(MODEL);
    return { id: found.id, object: found.object, owner: found.owned_by };
  },
  async embeddings(client) {
    const answer = await client.embeddings.create({ model: "embed", input: ["a machine", "a ledger"] });
    const vectors = answer.data.map((entry) => entry.embedding);
    return {
      sizes: vectors.map((vector) => vector.length),
      numbers: vectors.every((vector) => vector.every((x) => typeof x === "number")),
      usage: usageOf(answer),
    };
  },
  async headers(client) {
    const { data, response } = await client.chat.completions
      .create({ model: MODEL, messages: ASK, max_tokens: 4 })
      .withResponse();
    return {
      request_id: data._request_id,
      backend: response.headers.get("x-breakeven-backend"),
      cost: response.headers.get("x-breakeven-cost-usd"),
    };
  },
  bad_key: (client) => refused(client.withOptions({ apiKey: `gw_${"0".repeat(16)}_${"0".repeat(64)}` })),
  bad_request: (client) => refused(client, { n: 100 }),
  unknown_model: (client) => refused(client, { model: "nowhere" }),
  unknown_model_retrieved: (client) => caught(() => client.models.retrieve("nowhere")),
  over_budget: (client) => refused(client.withOptions({ apiKey: process.env.POOR_KEY, maxRetries: 2 })),
  timeout: (client) => refused(client, LONG, { timeout: 400, maxRetries: 0 }),
  async abort(client) {
    const { data, response } = await client.chat.completions
      .create({ model: MODEL, messages: ASK, stream: true, ...LONG })
      .withResponse();
    let seen = 0;
    for await (const _ of data) {
      seen += 1;
      if (seen === 3) break; // the SDK aborts the request when its iteration ends
    }
    return { seen, request_id: response.headers.get("x-request-id") };
  },
  async asynchronous(client) {
    const one = async () => {
      let chunks = 0;
      for await (const _ of await client.chat.completions.create(streamed)) chunks += 1;
      return chunks;
    };
    return { chunks: await Promise.all(Array.from({ length: 8 }, one)) };
  },
};

const client = new OpenAI();
const wanted = process.argv.slice(2);
const sdk = JSON.parse(readFileSync("node_modules/openai/package.json", "utf8")).version;
const found = { sdk };
for (const [name, check] of Object.entries(checks)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  try {
    found[name] = await check(client);
  } catch (error) {
    found[name] = { failed: `${error.stack}`.slice(0, 1500) };
  }
}
console.log(JSON.stringify(found));
