import { test } from "node:test";
import assert from "node:assert/strict";
import { extent, isOver, progress, withPull } from "../../src/local/page/core/pulls.js";

test("a pull grows with its events and ends with success or an error", () => {
  let pulls = withPull(new Map(), { name: "m", state: "running", status: "pulling", completed: 50, total: 200 });
  assert.equal(progress(pulls.get("m")), 0.25);
  assert.equal(extent(pulls.get("m")), "50 B of 200 B");
  pulls = withPull(pulls, { name: "m", state: "done", status: "success" });
  assert.deepEqual([isOver(pulls.get("m")), progress(pulls.get("m")), extent(pulls.get("m"))], [true, 1, "Downloaded."]);
  pulls = withPull(pulls, { name: "m", state: "failed", status: "", error: { kind: "model_missing", message: "no such model" } });
  assert.equal(extent(pulls.get("m")), "no such model");
  assert.match(extent({ name: "m", state: "stopped", status: "" }), /^Stopped/);
});

test("what is not known is not made up: no total, no share", () => {
  assert.equal(progress({ name: "m", state: "running", status: "verifying" }), null);
  assert.equal(extent({ name: "m", state: "running", status: "verifying" }), "verifying");
  assert.equal(withPull(new Map(), {}).size, 0);
});
