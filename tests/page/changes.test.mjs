import { test } from "node:test";
import assert from "node:assert/strict";
import { byQuery } from "../../src/local/page/core/changes.js";

test("changes are gathered by question and by call, and say whether something is left to undo", () => {
  const change = (query_id, call_id, path, undone = false) => ({ query_id, session_id: "s", call_id, tool: "write_file", path, what: "made", at: 1, undone });
  const [latest, first] = byQuery([change("q2", "q2:1:0", "c"), change("q2", "q2:0:0", "b", true), change("q2", "q2:0:0", "a", true), change("q1", "q1:0:0", "a", true)]);
  assert.deepEqual([latest.queryId, latest.isUndone, first.queryId, first.isUndone], ["q2", false, "q1", true]);
  assert.deepEqual(latest.calls.map((call) => [call.callId, call.changes.map((one) => one.path), call.isUndone]), [["q2:1:0", ["c"], false], ["q2:0:0", ["b", "a"], true]]);
});
