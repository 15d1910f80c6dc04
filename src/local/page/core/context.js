/** What the model was given: the parts of its window, and the messages as far as they belong to a question. */

export const PARTS = Object.freeze({
  system: "Instructions", tools: "Tools", summary: "Summary of earlier turns", history: "Earlier turns",
  question: "Question", steps: "Calls and results", reserve: "Kept free for the answer",
});

/** The parts of a gauge that are there, in the order of the prompt: `{part, title, tokens, share}`; the rest is free. */
export function partsOf(gauge) {
  if (!gauge?.limit) return [];
  const known = Object.keys(PARTS).filter((part) => gauge.parts?.[part] > 0);
  const others = Object.keys(gauge.parts ?? {}).filter((part) => !Object.hasOwn(PARTS, part) && gauge.parts[part] > 0);
  return [...known, ...others].map((part) => ({ part, title: PARTS[part] ?? part, tokens: gauge.parts[part], share: gauge.parts[part] / gauge.limit }));
}

/**
 * The messages of a conversation up to a question and with it, and what was said since.
 * @param {{role: string, content: any}[]} messages as the model will get them next @param {any} turn
 * @returns {{given: any[], later: any[], isFound: boolean}}
 */
export function upTo(messages, turn) {
  const at = messages.findLastIndex((one) => one.role === "user" && textOf(one).startsWith(turn.query));
  if (at < 0) return { given: messages, later: [], isFound: false };
  return { given: messages.slice(0, at + 1), later: messages.slice(at + 1), isFound: true };
}

/** What a turn's own calls have added behind its question. */
export function stepsOf(turn) {
  return (turn.tool_calls ?? []).flatMap((call) => [
    { role: "assistant", content: `${call.tool}(${JSON.stringify(call.args ?? {})})` },
    { role: "tool", name: call.tool, content: call.error ? `${call.error.kind}: ${call.error.message}` : (call.result ?? "") },
  ]);
}

/** The words of a message. */
export function textOf(message) {
  const { content } = message;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part) => part.text ?? JSON.stringify(part)).join("\n") : JSON.stringify(content ?? "");
}
