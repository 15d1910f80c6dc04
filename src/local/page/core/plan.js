/**
 * The plan that the model has proposed last, and how far it is: a fold of its calls.
 * @typedef {{call_id: string, title: string, status: string, steps: import("./todo.js").TodoItem[]}} Plan
 */

const PROPOSAL = "propose_plan";
const STEP = "plan_step";

/** Whether a call is shown with the plan; an earlier proposal, and a step that failed, stand by themselves. @param {Plan|null} plan */
export function isOfPlan(call, plan) {
  return plan !== null && (call.call_id === plan.call_id || (call.tool === STEP && call.error == null));
}

/** The plan after these calls; null where there is none. @returns {Plan|null} */
export function planAfter(calls) {
  const at = calls.findLastIndex((call) => call.tool === PROPOSAL && Array.isArray(call.args?.steps));
  if (at < 0) return null;
  const { args, result, error } = calls[at];
  const steps = args.steps.map((text) => ({ text: String(text), state: "open" }));
  for (const { tool, args: told, result: done } of calls.slice(at + 1)) {
    if (tool === STEP && done != null && steps[told?.step - 1]) steps[told.step - 1].state = told.state;
  }
  return { call_id: calls[at].call_id, title: String(args.title ?? ""), status: error ? "not approved" : result == null ? "waits for you" : "approved", steps };
}
