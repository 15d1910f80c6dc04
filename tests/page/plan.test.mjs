import assert from "node:assert/strict";
import test from "node:test";
import { heading, isPlan } from "../../src/local/page/core/approvals.js";
import { isOfPlan, planAfter } from "../../src/local/page/core/plan.js";

const proposal = (call_id, more = {}) => ({ call_id, tool: "propose_plan", args: { title: "T", steps: ["a", "b"] }, ...more });
const step = (number, state, more = {}) => ({ call_id: `s${number}`, tool: "plan_step", args: { step: number, state }, result: "Steps left", ...more });

test("the plan is the last one that was proposed, with the steps that were told since", () => {
  const calls = [proposal("p1", { error: { kind: "denied" } }), proposal("p2", { result: "approved" }), step(1, "done"), step(3, "done"), step(2, "doing", { result: null, error: {} })];
  const plan = planAfter(calls);
  assert.deepEqual([plan.call_id, plan.status, plan.steps.map(({ state }) => state)], ["p2", "approved", ["done", "open"]]);
  assert.deepEqual(calls.map((call) => isOfPlan(call, plan)), [false, true, true, true, false]);
});

test("a plan waits until it is approved or not, and where there is none nothing is shown", () => {
  assert.equal(planAfter([proposal("p")]).status, "waits for you");
  assert.equal(planAfter([proposal("p", { error: { kind: "denied" } })]).status, "not approved");
  assert.equal(planAfter([step(1, "done"), proposal("p", { args: { steps: "x" } })]), null);
  assert.equal(isOfPlan(step(1, "done"), null), false);
});

test("a card says that it is a plan, and how it is called", () => {
  const asked = { tool: "propose_plan", args: { title: "A list" } };
  assert.ok(isPlan(asked));
  assert.equal(heading(asked), "A plan for you to approve: A list");
});
