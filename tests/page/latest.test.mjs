import assert from "node:assert/strict";
import test from "node:test";
import { latest } from "../../src/local/page/core/latest.js";

/** Work that ends when it is told to. */
function paced() {
  const begun = [];
  const run = latest((value, isLast) => new Promise((end) => begun.push({ value, isLast, end })));
  return { begun, run, settle: () => new Promise(setImmediate) };
}

test("the first value is worked on at once, of those that come meanwhile the last", async () => {
  const { begun, run, settle } = paced();
  for (const letter of ["a", "ab", "abc"]) run(letter);
  assert.deepEqual(begun.map((one) => one.value), ["a"]);
  assert.equal(begun[0].isLast(), false);
  begun[0].end();
  await settle();
  assert.deepEqual(begun.map((one) => one.value), ["a", "abc"]);
  assert.equal(begun[1].isLast(), true);
});

test("what fails does not end it", async () => {
  const done = [];
  const run = latest(async (value) => {
    if (value === "bad") throw new Error("no");
    done.push(value);
  });
  run("bad");
  run("good");
  await new Promise(setImmediate);
  run("better");
  await new Promise(setImmediate);
  assert.deepEqual(done, ["good", "better"]);
});
