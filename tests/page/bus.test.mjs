import { mock, test } from "node:test";
import assert from "node:assert/strict";
import { Rates, Ring, groupsOf, isPassing, journalPath, lags, rateInWords, ratesBefore, seatsOf, together } from "../../src/local/page/core/bus.js";

test("a full ring keeps the latest, counts all, and shows the latest first", () => {
  const ring = new Ring(5, 2);
  for (let number = 1; number <= 23; number += 1) ring.push({ subject: `s${number}` });
  assert.equal(ring.count, 23);
  assert.ok(ring.rows.length < 7);
  const shown = Ring.latest(ring.rows, 5);
  assert.equal(shown.length, 5);
  assert.deepEqual(shown.slice(0, 2).map((row) => row.subject), ["s23", "s22"]);
  assert.deepEqual(shown.slice(3, 90).map((row) => row.n), [20, 19]);
});

test("a rate is the mean of the last ten whole seconds", () => {
  const rates = new Rates();
  for (let second = 0; second < 30; second += 1) rates.count("generator", second, 3);
  rates.count("critic", 29.5, 5);
  assert.deepEqual([rates.at(30).all, rates.at(30).by.get("critic")], [3.5, 0.5]);
  assert.equal(rates.at(60).all, 0);
  assert.ok(rates.seconds.size <= 12);
  assert.deepEqual([0, 0.04, 0.5, 12.4].map(rateInWords), ["", "<0.1/s", "0.5/s", "12/s"]);
});

test("the rates of a moment are those of the ten seconds before it, by what is on record", () => {
  const entries = [100.5, 99.5, 92, 90, 89.9].map((at) => ({ sender: at > 95 ? "critic" : "generator", sent_at: at }));
  const rates = ratesBefore(100, entries);
  assert.deepEqual([rates.all, rates.by.get("critic"), rates.by.get("generator")], [0.3, 0.1, 0.2]);
});

test("what comes is shown at once after a pause, and four times a second while much comes", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  let shown = 0;
  const { later, stop } = together(() => (shown += 1));
  later();
  mock.timers.tick(1);
  assert.equal(shown, 1);
  for (let passed = 0; passed < 1000; passed += 5) {
    later();
    mock.timers.tick(5);
  }
  assert.ok(shown >= 4 && shown <= 5, `${shown}`);
  later();
  stop();
  mock.timers.tick(1000);
  assert.ok(shown <= 5, "nothing is shown where the list has gone");
  mock.timers.reset();
});

const ROWS = [
  { name: "web_fetch", kind: "tool" },
  { name: "journal", kind: "service", counters: { pending_memory: 3, pending_critic: 0 } },
  { name: "memory", kind: "service", subscriptions: { "query.received": "memory", "response.generation": "memory", "bus.gap": "" } },
  { name: "proxy", kind: "proxy" },
  { name: "generator", kind: "agent" },
];

test("seats depend on who is there, not on the order in which they came", () => {
  const seats = (rows) => seatsOf(groupsOf(rows), 700).groups.flatMap((group) => group.seats.map(({ row, x, y }) => [row.name, x, y]));
  assert.deepEqual(seats(ROWS), seats([...ROWS].reverse()));
  assert.deepEqual(groupsOf(ROWS).map((group) => group.title), ["Agents", "Services", "Tools"]);
  assert.deepEqual(groupsOf(ROWS)[1].rows.map((row) => row.name), ["journal", "memory", "proxy"]);
  assert.ok(seatsOf(groupsOf(ROWS), 200).height > seatsOf(groupsOf(ROWS), 700).height);
});

test("what waits for a participant is counted once for each of its consumers", () => {
  assert.equal(lags(ROWS).get("memory"), 3);
  assert.equal(lags(ROWS).get("web_fetch"), 0);
});

test("the list of a filter begins with what is on record, and each message is there once", () => {
  const ring = new Ring();
  ring.push({ id: "c" });
  ring.precede([{ id: "c", seq: 3 }, { id: "b", seq: 2 }, { id: "a", seq: 1 }]);
  assert.deepEqual(ring.rows.map((row) => row.id), ["a", "b", "c"]);
});

test("the address of a list has its filter, and only what is given", () => {
  assert.deepEqual(["journal.read", "participant.status", "participant.request.start", "query.received"].map((subject) => isPassing({ subject })), [true, true, false, false]);
  assert.equal(journalPath({ filter: "subject:tool.* words", until: 5 }), "/journal?limit=100&filter=subject%3Atool.*+words&until=5");
  assert.equal(journalPath({ limit: null }, "/journal/export"), "/journal/export?");
});
