/** Envelopes of a trace, as the list of them shows them. */

/** Those that belong to what is selected: all of a turn, the request and the result of a call. */
export function belonging(trace, selection) {
  const all = trace?.envelopes ?? [];
  if (selection?.kind !== "call") return all;
  const span = (trace?.spans ?? []).find((one) => one.detail?.call_id === selection.callId);
  if (!span) return [];
  const request = all.find((one) => one.subject === `tool.request.${span.name}` && one.sent_at === span.started);
  return request ? all.filter((one) => one === request || one.in_reply_to === request.id) : [];
}

/** What tells one from the others of its list: those that are not on record have no id. */
export function keyOf(envelope) {
  return envelope.id ?? `${envelope.subject} ${envelope.sent_at}`;
}

/** Whether every word stands somewhere in the header. */
export function matches(envelope, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const header = `${envelope.subject} ${envelope.sender ?? ""} ${envelope.summary ?? ""} ${envelope.id ?? ""}`.toLowerCase();
  return words.every((word) => header.includes(word));
}

/** Whether it tells of trouble. */
export function isTrouble(envelope) {
  return envelope.subject === "bus.gap" || envelope.subject === "bus.dead" || envelope.subject === "query.failed" || (envelope.attempt ?? 1) > 1;
}
