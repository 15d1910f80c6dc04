import { test } from "node:test";
import assert from "node:assert/strict";
import { SubjectCounts } from "../../src/local/page/core/subjects.js";

test("a subject has its rate, its size, its delay, who sends it and who listens", () => {
  const counts = new SubjectCounts(100);
  counts.add({ subject: "tool.result.dice", sender: "dice", size: 100, sent_at: 109.5 }, 110);
  counts.add({ subject: "tool.result.dice", sender: "api", size: 300, sent_at: 118.5 }, 120);
  counts.add({ subject: "bus.gap", sender: "api", sent_at: 121 }, 120); // a clock that is ahead
  const participants = [
    { name: "generator", subscriptions: { "tool.result.": "generator", "tool.result": "" } },
    { name: "watcher", subscriptions: { "": "" } },
    { name: "memory", subscriptions: { "tool.result.dic": "", "tool.request.": "" } },
    { name: "proxy" },
  ];
  const [gap, dice] = counts.rows(participants, 120);
  assert.deepEqual([gap.subject, gap.delay, gap.to], ["bus.gap", 0, ["watcher"]]);
  assert.deepEqual(dice, { subject: "tool.result.dice", count: 2, rate: 0.1, bytes: 20, size: 200, delay: 1, slowest: 1.5, from: ["api", "dice"], to: ["generator", "watcher"] });
});
