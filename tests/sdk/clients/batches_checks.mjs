// The same with `openai` for Node, unchanged: told as JSON, judged by the test.
//
//     node batches_checks.mjs        reads OPENAI_BASE_URL, OPENAI_API_KEY and OTHER_KEY

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI, { toFile } from "openai";

const CHAT = "/v1/chat/completions";
const ENDED = ["completed", "failed", "expired", "cancelled"];

const line = (custom_id, changes = {}) => ({
  custom_id,
  method: "POST",
  url: CHAT,
  body: {
    model: "chat",
    messages: [{ role: "user", content: "Name a machine." }],
    max_tokens: 5,
    ...changes,
  },
});

const client = new OpenAI();
const other = new OpenAI({ apiKey: process.env.OTHER_KEY });

async function uploaded(lines) {
  const text = lines.map((one) => JSON.stringify(one)).join("\n");
  return client.files.create({ file: await toFile(Buffer.from(text), "in.jsonl"), purpose: "batch" });
}

async function made(lines, given = {}) {
  const file = await uploaded(lines);
  return client.batches.create({
    input_file_id: file.id,
    endpoint: CHAT,
    completion_window: "24h",
    ...given,
  });
}

async function ended(batch) {
  for (let turn = 0; turn < 300 && !ENDED.includes(batch.status); turn += 1) {
    await sleep(200);
    batch = await client.batches.retrieve(batch.id);
  }
  return batch;
}

async function caught(call) {
  try {
    await call();
  } catch (error) {
    return { raised: error.constructor.name, code: error.code };
  }
  return { raised: null };
}

const read = async (id) => (await (await client.files.content(id)).text()).split("\n").filter(Boolean).map(JSON.parse);

const file = await uploaded([line("a"), line("b"), line("bad", { n: 0 })]);
const batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: CHAT,
  completion_window: "24h",
  metadata: { job: "x" },
});
const done = await ended(batch);
const failed = await ended(await made([line("a"), line("a"), line("c", { model: "nowhere" })]));
const cancelled = await client.batches.cancel((await made([line("a")])).id);
const pages = [];
for await (const one of client.batches.list({ limit: 1 })) pages.push(one.id);
const names = [];
for await (const one of client.files.list({ purpose: "batch" })) names.push(one.id);
console.log(
  JSON.stringify({
    sdk: JSON.parse(readFileSync("node_modules/openai/package.json", "utf8")).version,
    file: { object: file.object, purpose: file.purpose, bytes: file.bytes },
    retrieved: JSON.stringify(await client.files.retrieve(file.id)) === JSON.stringify(file),
    made: { status: batch.status, object: batch.object },
    done: { status: done.status, counts: done.request_counts, metadata: done.metadata },
    output: await read(done.output_file_id),
    errors: await read(done.error_file_id),
    failed: { status: failed.status, errors: failed.errors.data.map((one) => [one.line, one.code]) },
    cancelled: [cancelled.status, (await ended(cancelled)).status],
    pages: [pages.length, new Set(pages).size, pages.at(-1) === batch.id],
    names: names.includes(file.id),
    other: [
      await caught(() => other.files.retrieve(file.id)),
      await caught(() => other.batches.retrieve(batch.id)),
    ],
    deleted: (await client.files.delete(file.id)).deleted,
    gone: await caught(() => client.files.content(file.id)),
  }),
);
