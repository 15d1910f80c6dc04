/** What was looked for, opened and remembered for an answer. */

import { isTold } from "./story.js";
import { hostOf } from "./sources.js";

/** @returns {{searched: any[], opened: any[], recalled: any[], passedOver: any[]}} */
export function searchesOf(turn, callId = null) {
  const calls = (turn?.tool_calls ?? []).filter((call) => callId === null || call.call_id === callId);
  const recalled = calls.flatMap((call) => call.recalled ?? []);
  return {
    searched: calls.filter((call) => typeof call.args?.query === "string").map((call) => ({ call, text: call.args.query, links: call.links ?? [] })),
    opened: calls.filter((call) => hostOf(call.args?.url ?? "")).map((call) => ({ call, address: call.args.url })),
    recalled: once(recalled.filter(isTold)),
    passedOver: once(recalled.filter((one) => !isTold(one))),
  };
}

function once(recalls) {
  return [...new Map(recalls.map((one) => [one.engram_id, one])).values()];
}
