// Talks to /v1/chat/completions with the official package of OpenAI for Node. It prints what it got, for a test.
// It asks twice, the second time for a stream, and once with a wrong token.
import OpenAI from "openai";

const [address, token] = process.argv.slice(2);
const baseURL = `${address}/v1`;
const client = new OpenAI({ baseURL, apiKey: token });

const model = (await client.models.list()).data[0].id;
console.log("model", model);

const messages = [
  { role: "developer", content: "be brief" },
  { role: "user", content: [{ type: "text", text: "how is jellyfin?" }] },
];
const first = await client.chat.completions.create({ model, messages });
const said = first.choices[0].message.content;
console.log("whole", said, first.choices[0].finish_reason, first.usage.completion_tokens > 0);

messages.push({ role: "assistant", content: said }, { role: "user", content: "and since when?" });
const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
const all = await stream.finalChatCompletion();
console.log("stream", all.choices[0].message.content, all.choices[0].finish_reason, all.usage.completion_tokens > 0);

try {
  await new OpenAI({ baseURL, apiKey: "wrong" }).models.list();
} catch (error) {
  console.log("refused", error.status, error.code);
}
