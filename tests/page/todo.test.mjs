import assert from "node:assert/strict";
import test from "node:test";
import { listAfter, progress, setsList } from "../../src/local/page/core/todo.js";

const call = (items, more = {}) => ({ tool: "todo", args: { items }, result: "The list is kept", ...more });

test("the last list that was set is the list, and one that failed or is not settled yet is none", () => {
  const set = call([{ text: "write", state: "done" }, { text: "test" }]);
  const failed = call([{ text: "no" }], { result: null, error: { kind: "bad_arguments", message: "" } });
  assert.deepEqual(listAfter([call([]), set, failed, call([{ text: "later" }], { result: undefined })]), [
    { text: "write", state: "done" },
    { text: "test", state: "open" },
  ]);
  assert.deepEqual([failed, { tool: "dice", result: "3", args: { items: [] } }, call("x")].map(setsList), [false, false, false]);
  assert.deepEqual(listAfter([]), []);
});

test("what is counted is what is still meant to be done, and a state that nobody knows is open", () => {
  const items = listAfter([call([{ text: "a", state: "done" }, { text: "b", state: "doing" }, { text: "c", state: "dropped" }, { text: "d", state: "__proto__" }])]);
  assert.equal(items[3].state, "open");
  assert.equal(progress(items), "1 of 3 done");
});
