// Starts a chain, waits at its gate, answers it, and waits for the end, with a client whose types openapi-typescript has made from
// the OpenAPI document (api.ts). The compiler checks that each call is one of the document.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[]; exitCode?: number };
declare const setTimeout: (call: () => void, milliseconds: number) => void;

const [baseUrl, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 100));

// until repeats a call until it returns something, for at most two minutes.
async function until<T>(what: string, call: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 1200; tries++) {
    const found = await call();
    if (found !== undefined) return found;
    await pause();
  }
  throw new Error(`${what} does not come`);
}

async function main(): Promise<void> {
  const body: components["schemas"]["StartInput"] = { prompt: "look", max_tier: 1, services: ["jellyfin"] };
  const started = await client.POST("/api/v1/chains", { body, params: { header: { "Idempotency-Key": "generated" } } });
  if (!started.data) throw new Error(JSON.stringify(started.error));
  const path = { chain_id: started.data.chain_id };

  const gate = await until("the gate", async () => (await client.GET("/api/v1/chains/{chain_id}/gate", { params: { path } })).data);
  const wrong = await client.POST("/api/v1/chains/{chain_id}/gate", { params: { path }, body: { gate_id: "gate-9", action: "fix" } });
  if (wrong.error?.status !== 422) throw new Error("an answer for another gate is not refused");
  const answered = await client.POST("/api/v1/chains/{chain_id}/gate", {
    params: { path },
    body: { gate_id: gate.id, action: "fix", guidance: "remove the lock" },
  });
  if (!answered.data) throw new Error(JSON.stringify(answered.error));

  const outcome = await until("the end", async () => {
    const { data } = await client.GET("/api/v1/chains/{chain_id}", { params: { path } });
    return data?.chain.outcome || undefined;
  });
  console.log(`${started.data.chain_id} ended ${outcome}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
