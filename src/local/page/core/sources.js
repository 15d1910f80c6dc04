/** Where an answer's facts come from: each source of a turn's tool calls once, numbered in the order they came. */

const RECALLED = "engram:";

/** @param {{tool_calls: any[]}} turn @returns {{number: number, address: string, kind: "memory"|"page"|"other",
 * label: string, calls: string[]}[]} */
export function sourcesOf(turn) {
  const found = new Map();
  for (const call of turn.tool_calls) {
    for (const address of call.sources ?? []) {
      const source = found.get(address) ?? { number: found.size + 1, address, ...shown(address), calls: [] };
      source.calls.push(call.call_id);
      found.set(address, source);
    }
  }
  return [...found.values()];
}

function shown(address) {
  if (address.startsWith(RECALLED)) return { kind: "memory", label: "memory" };
  const host = hostOf(address);
  return host ? { kind: "page", label: host } : { kind: "other", label: address };
}

/** The id of the engram that a source names, or null. */
export function engramOf(address) {
  return address.startsWith(RECALLED) ? address.slice(RECALLED.length) : null;
}

/** The host of a web address, "" for anything else. */
export function hostOf(address) {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.host : "";
  } catch {
    return "";
  }
}
