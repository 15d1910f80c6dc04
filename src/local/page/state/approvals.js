/** What waits for a person to say yes or no: heard on the stream, which tells it again after each interruption; answered here. */

import { signal } from "../html.js";
import { withDecision, withRequest } from "../core/approvals.js";
import { request } from "../net/api.js";

/** By call_id. @type {any} */
export const approvals = signal(new Map());

/** One that asks, or what was decided of it. @param {any} event */
export function hearApproval(event) {
  const before = approvals.peek();
  const known = event.tool || event.question ? withRequest(before, event) : before;
  approvals.value = event.decision ? withDecision(known, event) : known;
}

/** All that waits, as the record has it: after an interruption. */
export async function loadApprovals() {
  const told = await request("GET", "/approvals").catch(() => null);
  for (const one of told?.approvals ?? []) hearApproval(one);
}

/** Answer one. Throws an `ApiFailure`; an earlier answer from another frontend is received, not thrown. */
export async function decide(callId, decision, words = null, mode = null) {
  const body = { decision, by: "page", ...(words === null ? {} : { answer: words }), ...(mode === null ? {} : { mode }) };
  await request("POST", `/approvals/${encodeURIComponent(callId)}`, body);
  hearApproval({ call_id: callId, decision, by: "page" });
}
