/**
 * What became of a question, in sentences: from the turn alone, and with the trace in more detail. No clock, no page.
 * @typedef {{key: string, at: number|null, kind: string, text: string, more?: string, callId?: string}} Sentence
 *   `at` is seconds since the question, `kind` one of the waterfall's or "bad", `more` words that may be long
 */

import { isDone } from "./turn.js";
import { answerOf } from "./waterfall.js";
import { counted, duration, figure } from "./words.js";

const LONG_WAIT = 0.05; // seconds in line that are worth a sentence

/** @param {any} turn @param {any} trace or null while it is not known @returns {Sentence[]} in the order of what happened */
export function storyOf(turn, trace) {
  const from = trace?.envelopes?.[0]?.sent_at ?? turn.created_at ?? null;
  const after = (at) => (at == null || from == null ? null : Math.max(0, at - from));
  const told = [asked(turn), ...hints(turn), ...waits(trace, after), ...restarts(trace, after), ...compactions(trace, after), ...steps(turn, trace, after), ...losses(trace, after)];
  const ends = ending(turn, trace, after);
  const later = [...judgements(turn, trace, after), ...memories(turn, trace, after)];
  return [...inTime(told), ...ends, ...inTime(later)];
}

/** Sort by time; entries without one stay after their predecessor. */
function inTime(sentences) {
  let last = 0;
  const keyed = sentences.map((one, index) => ((last = one.at ?? last), [last, index, one]));
  return keyed.sort((one, other) => one[0] - other[0] || one[1] - other[1]).map(([, , one]) => one);
}

function asked(turn) {
  const files = turn.attachments?.length ? ` with ${counted(turn.attachments.length, "file")}` : "";
  return { key: "asked", at: 0, kind: "line", text: `You asked${files}.`, more: turn.query };
}

function hints(turn) {
  const hint = turn.context?.hint;
  return hint ? [{ key: "hint", at: 0, kind: "other", text: "The model is small, so the last line of its prompt said what to do; where that is to answer, llama.cpp lets it write no call.", more: hint }] : [];
}

function waits(trace, after) {
  return spansOf(trace, "line")
    .filter((span) => span.ended != null && span.ended - span.started >= LONG_WAIT)
    .map((span) => ({ key: span.id, at: after(span.started), kind: "line", text: `The question waited ${duration(span.ended - span.started)} in the queue.` }));
}

function restarts(trace, after) {
  return (trace?.attempts ?? [])
    .filter((one) => one.attempt > 1)
    .map((one) => ({ key: `attempt ${one.attempt}`, at: after(one.started), kind: "bad", text: `The answer was started again, attempt ${one.attempt}.`, more: one.reason || "The previous attempt did not finish." }));
}

function compactions(trace, after) {
  return envelopesOf(trace, "context.compacted").map((one) => ({
    key: one.id,
    at: after(one.sent_at),
    kind: "other",
    text: "The conversation was too long for the model's context window, so earlier parts were left out.",
    more: one.summary ?? "",
  }));
}

function losses(trace, after) {
  const dead = envelopesOf(trace, "bus.dead").map((one) => ({ key: one.id, at: after(one.sent_at), kind: "bad", text: "A message could not be handled and is not retried.", more: one.summary ?? one.sender }));
  const gaps = envelopesOf(trace, "bus.gap").map((one) => ({ key: one.id, at: after(one.sent_at), kind: "bad", text: "A participant has missed messages.", more: one.summary ?? one.sender }));
  return [...dead, ...gaps];
}

/** The calls of the model and of its tools, each in its turn. */
function steps(turn, trace, after) {
  const models = spansOf(trace, "model");
  const usage = turn.usage?.steps ?? [];
  const count = Math.max(models.length, usage.length);
  const calls = (turn.tool_calls ?? []).map((call) => calling(call, turn, trace, after));
  const said = Array.from({ length: count }, (_, index) => thinking(index, count, models[index], usage[index], turn, after));
  return [...said, ...calls];
}

function thinking(index, count, span, step, turn, after) {
  const started = span?.started ?? step?.started ?? null;
  const ended = span?.ended ?? step?.ended ?? null;
  const which = count > 1 ? `, call ${index + 1} of ${count}` : "";
  const took = started != null && ended != null ? ` for ${duration(ended - started)}` : "";
  const detail = span?.detail ?? {};
  const prompt = step?.prompt_tokens ?? detail.prompt_tokens;
  const spoken = step?.completion_tokens ?? detail.completion_tokens;
  const first = step?.first_token ?? detail.first_token;
  const more = [
    prompt ? `read ${figure(prompt)} tokens` : "",
    first != null && started != null ? `first word after ${duration(first - started)}` : "",
    spoken ? `wrote ${figure(spoken)}` : "",
  ];
  const model = step?.model || turn.model;
  return { key: span?.id ?? `step ${index}`, at: after(started), kind: "model", text: `${model ? `${model} ` : "The model "}worked${took}${which}.`, more: more.filter(Boolean).join(", ") };
}

function calling(call, turn, trace, after) {
  const sentence = { key: `call ${call.call_id}`, at: after(begunAt(call, turn, trace)), kind: call.error ? "bad" : "tool", callId: call.call_id };
  const with_ = purpose(call);
  if (call.error) return { ...sentence, text: `${call.tool}${with_} failed: ${call.error.message || call.error.kind}` };
  if (!isDone(call)) return { ...sentence, text: `${call.tool}${with_} ${turn.status === "open" ? "is running" : "gave no result"}.` };
  const took = call.duration_ms == null ? "" : ` in ${duration(call.duration_ms / 1000)}`;
  const more = call.tainted ? "The result is untrusted content: from here on the model may open fewer addresses, and more calls need approval." : "";
  return { ...sentence, text: `${call.tool}${with_} returned ${amount(call)}${took}.`, more };
}

/** When a call began: as its span says, or else when the step of the model that made it had ended. */
function begunAt(call, turn, trace) {
  const span = (trace?.spans ?? []).find((one) => one.detail?.call_id === call.call_id);
  const step = Number(call.call_id?.split(":").at(-2));
  return span?.started ?? turn.usage?.steps?.[step]?.ended ?? null;
}

function purpose(call) {
  const value = ["query", "url", "path", "command", "text", "question", "name"].map((name) => call.args?.[name]).find((one) => typeof one === "string");
  return value ? ` “${value.length > 90 ? `${value.slice(0, 90)}…` : value}”` : "";
}

function amount(call) {
  if (call.recalled?.length) {
    const told = call.recalled.filter(isTold).length;
    return `${figure(told)} of ${counted(call.recalled.length, "remembered exchange")}`;
  }
  const size = call.whole?.characters ?? (typeof call.result === "string" ? call.result.length : 0);
  return size ? counted(size, "character") : "nothing";
}

/** Whether a remembered exchange that was compared was near enough to be told. */
export function isTold(recall) {
  const { fused, threshold } = recall.parts ?? {};
  return fused === undefined || threshold === undefined || fused >= threshold;
}

function ending(turn, trace, after) {
  const at = after((trace && answerOf(trace)?.sent_at) ?? turn.finished_at ?? turn.usage?.steps?.at(-1)?.ended ?? null);
  const took = at ? ` after ${duration(at)}` : "";
  const degraded = (turn.degraded ?? []).map((text, index) => ({ key: `degraded ${index}`, at, kind: "bad", text }));
  if (turn.status === "answered") return [{ key: "ended", at, kind: "store", text: `The answer was complete${took}.`, more: extent(turn) }, ...degraded];
  if (turn.status === "cancelled") return [{ key: "ended", at, kind: "store", text: `You stopped the answer${took}.` }, ...degraded];
  if (turn.status === "failed") return [{ key: "ended", at, kind: "bad", text: `There is no answer: ${turn.error?.message || turn.error?.kind || "the reason is unknown"}` }, ...degraded];
  return degraded;
}

function extent(turn) {
  const tokens = turn.usage?.completion_tokens;
  return tokens ? `${counted(tokens, "token")} written in all, ${figure(turn.usage.prompt_tokens ?? 0)} read` : "";
}

function judgements(turn, trace, after) {
  const { critique, pairwise, rating } = turn.scores ?? {};
  const at = (subject) => after(envelopesOf(trace, subject)[0]?.sent_at ?? null);
  const found = [];
  if (critique?.score) found.push({ key: "critique", at: at("critique.result"), kind: "critic", text: `The critic graded the answer ${critique.score} of 5${critique.self_judged ? ", by the same model that answered" : ""}.`, more: critique.feedback ?? "" });
  else if (critique && critique.status !== "judge_unfit") found.push({ key: "critique", at: at("critique.result"), kind: "critic", text: "The critic gave no grade.", more: critique.feedback || critique.status });
  if (pairwise?.winner) found.push({ key: "pairwise", at: at("pairwise.result"), kind: "critic", text: pairwise.winner === "tie" ? "The second model's answer was as good." : `The ${pairwise.winner === "A" ? "first" : "second"} model's answer was the better one.`, more: pairwise.feedback ?? "" });
  if (rating) found.push({ key: "rating", at: at("user.feedback"), kind: "critic", text: `You rated the answer ${rating > 0 ? "good" : "bad"}.` });
  return found;
}

function memories(turn, trace, after) {
  const kept = envelopesOf(trace, "memory.ingested")[0];
  return kept ? [{ key: kept.id, at: after(kept.sent_at), kind: "memory", text: "The exchange was stored in the memory." }] : [];
}

function spansOf(trace, kind) {
  return (trace?.spans ?? []).filter((span) => span.kind === kind).sort((one, other) => one.started - other.started);
}

function envelopesOf(trace, subject) {
  return (trace?.envelopes ?? []).filter((one) => one.subject === subject);
}
