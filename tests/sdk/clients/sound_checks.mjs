// Sound and its transcripts with `openai` for Node, unchanged: told as JSON, judged by the test.
//
//     node sound_checks.mjs        reads OPENAI_BASE_URL and OPENAI_API_KEY

import { File } from "node:buffer";
import { readFileSync } from "node:fs";
import OpenAI, { toFile } from "openai";

globalThis.File ??= File; // Node 18 has it under this name only

const HEAR = { model: "hear" };

async function speech(seconds) {
  const size = 2 * Math.round(16000 * seconds);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + size, 4);
  head.write("WAVEfmt ", 8);
  [16, 0x00010001, 16000, 32000, 0x00100002].forEach((word, place) => head.writeUInt32LE(word, 16 + 4 * place));
  head.write("data", 36);
  head.writeUInt32LE(size, 40);
  return toFile(Buffer.concat([head, Buffer.alloc(size)]), "speech.wav");
}

const checks = {
  async transcript(client) {
    const { data, response } = await client.audio.transcriptions
      .create({ file: await speech(2), language: "en", temperature: 0, ...HEAR })
      .withResponse();
    return {
      text: data.text,
      usage: data.usage,
      request_id: response.headers.get("x-request-id"),
      cost: response.headers.get("x-breakeven-cost-usd"),
    };
  },
  async verbose(client) {
    const answer = await client.audio.transcriptions.create({
      file: await speech(2),
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
      ...HEAR,
    });
    return { text: answer.text, duration: Number(answer.duration) };
  },
  async plain(client) {
    const found = {};
    for (const shape of ["text", "srt", "vtt"]) {
      found[shape] = await client.audio.transcriptions.create({
        file: await speech(2),
        response_format: shape,
        ...HEAR,
      });
    }
    return found;
  },
  async stream(client) {
    const kinds = new Set();
    let [text, done] = ["", null];
    const ask = { file: await speech(2), model: "hear-4o", stream: true };
    for await (const event of await client.audio.transcriptions.create(ask)) {
      kinds.add(event.type);
      text += event.delta ?? "";
      done = event.text ?? done;
    }
    return { kinds: [...kinds].sort(), text, done };
  },
  async translation(client) {
    return { text: (await client.audio.translations.create({ file: await speech(2), ...HEAR })).text };
  },
  async not_heard(client) {
    try {
      await client.audio.transcriptions.create({ file: await speech(1), model: "chat" });
    } catch (error) {
      return { status: error.status, param: error.param, message: error.message };
    }
    return {};
  },
};

const client = new OpenAI();
const found = { sdk: JSON.parse(readFileSync("node_modules/openai/package.json", "utf8")).version };
for (const [name, check] of Object.entries(checks)) {
  try {
    found[name] = await check(client);
  } catch (error) {
    found[name] = { failed: `${error.stack}`.slice(0, 1500) };
  }
}
console.log(JSON.stringify(found));
