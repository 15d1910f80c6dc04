/** The announcements of an answer to screen readers: its states and its end, not its words. */

import { duration, counted } from "../core/words.js";
import { sourcesOf } from "../core/sources.js";
import { currentId, spoken } from "./store.js";

const EVERY = 7; // seconds between two signs of life

const WORDS = { waiting: "waiting for its turn", thinking: "thinking", answering: "answering" };
let timer = 0;
let since = 0;

/** Tell what has changed between two states of a turn that is on show. */
export function announce(before, after) {
  if (after.session_id !== currentId.peek()) return;
  if (after.status !== "open" && before.status === "open") {
    clearInterval(timer);
    spoken.value = ended(after);
  } else if (after.phase !== before.phase || after.tool_calls.length !== before.tool_calls.length) {
    spoken.value = doing(after);
    if (!since || before.phase === "waiting") since = Date.now() / 1000;
    clearInterval(timer);
    timer = setInterval(() => (spoken.value = `still ${doing(after)}, ${duration(Date.now() / 1000 - since)}`), EVERY * 1000);
  }
}

function doing(turn) {
  const running = turn.tool_calls.filter((call) => call.duration_ms == null && call.error == null);
  if (turn.phase === "calling" && running.length) return `using ${running.map((call) => call.tool.replaceAll("_", " ")).join(" and ")}`;
  return WORDS[turn.phase] ?? turn.phase;
}

function ended(turn) {
  since = 0;
  if (turn.status === "failed") return `no answer: ${turn.error?.message ?? ""}`;
  if (turn.status === "cancelled") return "stopped";
  const sources = sourcesOf(turn).length;
  return sources ? `answer complete, ${counted(sources, "source")}` : "answer complete";
}
