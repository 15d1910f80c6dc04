/**
 * What waits for a person: a tool that asks whether it may, or a question of the model. A fold of messages by call_id;
 * times are seconds since 1970. The first answer wins, from any frontend; silence denies.
 * @typedef {{call_id: string, query_id: string, session_id: string, tool: string, args: any, level?: string,
 *   why?: string, sources?: string[], effect?: string, asked_at?: number, expires_at?: number|null, question?: string,
 *   options?: string[], decision?: string|null, by?: string|null, agent?: string, root_query_id?: string,
 *   root_session_id?: string, client?: string, user_id?: string, owner_decides?: boolean}} Approval
 */

export const CHOICES = Object.freeze({ allow: "Allow once", deny: "Deny", allow_session: "In this conversation" });

/** The answers that there are to a question: the call of a program is of no conversation, and only the owner allows what
 * others ask. @param {any} approval @param {boolean} [isOwner] @returns {[string, string][]} */
export function choicesFor(approval, isOwner = true) {
  if (isReserved(approval, isOwner)) return [["deny", CHOICES.deny]];
  if (isFolder(approval)) return [["allow", "Trust the folder"], ["deny", "Do not trust it"]];
  return Object.entries(CHOICES).filter(([decision]) => !approval.client || decision !== "allow_session");
}

/** Whether this waits for the owner, who does not see this page. @param {Approval} approval @param {boolean} isOwner */
export function isReserved(approval, isOwner) {
  return !isOwner && Boolean(approval.owner_decides);
}

/** The user whose conversation asks, if that is another one than the owner. @param {Approval} approval */
export function guestOf({ user_id: user = "owner" }) {
  return user === "owner" ? "" : user;
}

/** The approvals that wait for the owner in conversations of others, or for the signed-in user in their own.
 * @param {Map<string, Approval>} known @param {number} now @param {{ofOthers: boolean, isOwner: boolean}} wanted */
export function waiting(known, now, { ofOthers, isOwner }) {
  const open = [...known.values()].filter((one) => !one.decision && (one.expires_at == null || one.expires_at > now));
  return open.filter((one) => (ofOthers ? isOwner && guestOf(one) && one.owner_decides : !isOwner || !guestOf(one)));
}

/** After `approval.request`. One that is known keeps its decision. @param {Map<string, Approval>} known */
export function withRequest(known, request) {
  if (!request?.call_id) return known;
  const before = known.get(request.call_id);
  return new Map(known).set(request.call_id, { decision: null, by: null, ...request, ...(before?.decision ? { decision: before.decision, by: before.by } : {}) });
}

/** After `approval.decision`; the first one counts. @param {Map<string, Approval>} known */
export function withDecision(known, { call_id, decision, by = null }) {
  const before = known.get(call_id);
  if (!before || before.decision) return known;
  return new Map(known).set(call_id, { ...before, decision, by });
}

/** What still waits in a conversation, the oldest first: what it asks itself, what its agents do, and in each what a
 * program asks that calls tools by itself. @param {Map<string, Approval>} known */
export function waitingIn(known, sessionId, now) {
  return [...known.values()]
    .filter((one) => (one.client || (one.root_session_id || one.session_id) === sessionId) && !one.decision && (one.expires_at == null || one.expires_at > now))
    .sort((one, other) => (one.asked_at ?? 0) - (other.asked_at ?? 0));
}

/** Whether something of a query waits for a person. @param {Map<string, Approval>} known */
export function isAsked(known, queryId) {
  return [...known.values()].some((one) => (one.root_query_id || one.query_id) === queryId && !one.decision);
}

/** How long until it is denied by itself: 272 → "4:32"; "" where it waits for ever. */
export function timeLeft(approval, now) {
  if (approval.expires_at == null) return "";
  const seconds = Math.max(0, Math.floor(approval.expires_at - now));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Whether the model asks its user something, and not for approval. */
export function isQuestion(approval) {
  return approval.tool === "request_clarification" || Boolean(approval.question);
}

/** Whether it is the question if the owner trusts a folder. */
export function isFolder(approval) {
  return approval.tool === "trust_folder";
}

/** Whether a plan is shown for approval. */
export function isPlan(approval) {
  return approval.tool === "propose_plan";
}

/** The sentence at the head of a card, which tells the owner for whom it asks. @param {any} approval @param {boolean} [isOwner] */
export function heading(approval, isOwner = true) {
  const guest = guestOf(approval);
  return `${guest && isOwner ? `For ${guest}: ` : ""}${headingOf(approval)}`;
}

function headingOf(approval) {
  if (isPlan(approval)) return `A plan for you to approve: ${approval.args?.title ?? ""}`;
  if (isQuestion(approval)) return approval.question ?? approval.args?.question ?? "The model has a question.";
  if (isFolder(approval)) return "Do you trust this folder? The assistant is about to read files in it";
  const certainty = approval.level === "L1" ? ", which can be undone" : approval.level === "L2" ? ", which cannot be undone" : "";
  const whose = approval.agent ? `The agent ${approval.agent}: ` : approval.client ? `A program that calls itself “${approval.client}”: ` : "";
  return `${whose}${approval.tool} wants to ${deed(approval.args ?? {})}${certainty}`;
}

function deed(args) {
  if (Array.isArray(args.argv) || typeof args.command === "string") return "run a command";
  if (typeof args.url === "string") return "open an address";
  if (typeof args.content === "string" || typeof args.new === "string") return "change a file";
  return "do this";
}

/** What would happen, as lines to be shown: `{kind: "command"|"address"|"added"|"removed"|"text", text}`. Every argument
 * is among them, so that nothing is approved unseen, with characters that nobody can see as codes.
 * @param {{args?: Record<string, any>}} asked */
export function effectOf({ args = {} }) {
  const { shown, names } = known(args);
  const others = Object.entries(args).filter(([name]) => !names.includes(name));
  const rest = others.map(([name, value]) => ({ kind: "text", text: `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}` }));
  return [...shown, ...rest].map((line) => ({ ...line, text: visible(line.text) }));
}

/** The arguments that are shown in a form of their own, and their names. */
function known(args) {
  if (Array.isArray(args.argv)) return { shown: [{ kind: "command", text: args.argv.map(quoted).join(" ") }], names: ["argv"] };
  if (typeof args.command === "string") return { shown: [{ kind: "command", text: args.command }], names: ["command"] };
  const place = typeof args.path === "string" ? ["path"] : [];
  if (typeof args.old === "string" && typeof args.new === "string") return { shown: [...path(args), ...lines("removed", args.old), ...lines("added", args.new)], names: [...place, "old", "new"] };
  if (typeof args.content === "string") return { shown: [...path(args), ...lines("added", args.content)], names: [...place, "content"] };
  if (typeof args.url === "string") return { shown: [{ kind: "address", text: args.url }], names: ["url"] };
  return { shown: [], names: [] };
}

/** A text in which marks of the writing direction, control characters and others without a shape are codes. */
function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => ("\n\t".includes(char) ? char : `\\u{${char.codePointAt(0).toString(16)}}`));
}

function path(args) {
  return typeof args.path === "string" ? [{ kind: "text", text: args.path }] : [];
}

function lines(kind, text) {
  return text.replace(/\n$/, "").split("\n").map((line) => ({ kind, text: line }));
}

/** An argument as a shell would have to be told it. */
function quoted(argument) {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${String(argument).replaceAll("'", String.raw`'\''`)}'`;
}
