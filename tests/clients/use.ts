// Uses the generated TypeScript client; prints the answers as JSON.

import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const api = createClient<paths>({
  baseUrl: process.env.API ?? "",
  headers: { Authorization: `Bearer ${process.env.TOKEN}` },
});
const disk = (name: string) => ({ params: { path: { disk: name } } });

await api.POST("/v1/disks/{disk}/rules", {
  ...disk("d"),
  body: { rule: "-D 10ms:1 -T read", name: "slow" },
});
const latency = await api.GET("/v1/disks/{disk}/latency", disk("d"));
const clock = await api.GET("/v1/clock");
const exports = await api.GET("/v1/exports");
const refused = await api.GET("/v1/disks/{disk}", disk("nothing"));
const rules = await api.GET("/v1/rules");
console.log(JSON.stringify({
  exports: exports.data?.map((one) => one.name),
  refused: refused.error?.error,
  rules: rules.data?.map((rule) => rule.rule),
  now_ns: clock.data?.now_ns,
  started_ns: clock.data?.started_ns,
  reads: latency.data?.ops.find((op) => op.op === "read")?.disk,
}));
await api.DELETE("/v1/rules");
const left = await api.GET("/v1/rules");
if (left.data?.length !== 0) {
  throw new Error("rules are left");
}
