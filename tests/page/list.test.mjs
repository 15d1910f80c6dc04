import assert from "node:assert/strict";
import test from "node:test";
import { chosenOf, grouped, inFolders, tagsIn, withChanges, withSession, withoutSession } from "../../src/local/page/core/session_list.js";
import { hostOf, sourcesOf } from "../../src/local/page/core/sources.js";
import { ago, bytes, counted, duration, figure } from "../../src/local/page/core/words.js";
import { EventParser } from "../../src/local/page/net/server_events.js";

const NOON = new Date(2026, 10, 22, 12).getTime() / 1000;
const DAY = 86_400;

test("conversations stand by the day of their last change, the latest first, pinned ones before all", () => {
  const rows = [["a", NOON - 60], ["b", NOON - 5], ["c", NOON - DAY], ["d", NOON - 3 * DAY], ["e", NOON - 400 * DAY]].map(([session_id, updated_at]) => ({ session_id, updated_at }));
  rows.push({ session_id: "p", updated_at: 5, pinned: true });
  const found = grouped(rows, NOON).map(([heading, group]) => [heading, group.map((row) => row.session_id).join("")]);
  assert.deepEqual(found.slice(0, 4), [["Pinned", "p"], ["Today", "ba"], ["Yesterday", "c"], ["This week", "d"]]);
  assert.equal(found[4][1], "e");
});

test("the versions of a conversation are one row, that of the last change", () => {
  const rows = [{ session_id: "a", updated_at: 5 }, { session_id: "b", conversation: "a", updated_at: 9 }, { session_id: "c", conversation: "a", updated_at: 7 }];
  assert.deepEqual(grouped(rows, NOON).flatMap(([, group]) => group.map((row) => row.session_id)), ["b"]);
});

test("what is archived is listed alone, folders by name with theirs in them, tags once each", () => {
  const rows = [{ session_id: "a", folder: "Work" }, { session_id: "b", archived: true }, { session_id: "c", tags: ["sea"] }, { session_id: "d", folder: "Art", tags: ["sea"] }];
  const ids = (choice) => chosenOf(rows, choice).map((row) => row.session_id).join("");
  assert.deepEqual([ids({ kind: "all" }), ids({ kind: "archived" }), ids({ kind: "tag", tag: "sea" })], ["acd", "b", "cd"]);
  const folders = inFolders(rows, ["Work", "Zoo"]).map(([name, inside]) => [name, inside.map((row) => row.session_id).join("")]);
  assert.deepEqual(folders, [["Art", "d"], ["Work", "a"], ["Zoo", ""]]);
  assert.deepEqual(grouped(rows, NOON).flatMap(([, group]) => group.map((row) => row.session_id)).sort(), ["b", "c"]);
  assert.deepEqual(tagsIn(" sea, sun,sea,, "), ["sea", "sun"]);
});

test("what is heard of conversations while the list is read holds over what was read", () => {
  const list = (...ids) => new Map(ids.map((id) => [id, { session_id: id }]));
  const before = list("kept", "deleted", "long gone");
  const now = withSession(withSession(withoutSession(before, "deleted"), { session_id: "new" }), { session_id: "kept", title: "T" });
  const read = withChanges(list("kept", "deleted", "unheard"), before, now);
  assert.deepEqual([...read.keys()].sort(), ["kept", "new", "unheard"]);
  assert.equal(read.get("kept").title, "T");
});

test("a change of a conversation keeps what it does not tell of", () => {
  const list = withSession(withSession(new Map(), { session_id: "a", title: "T", pinned: true }), { session_id: "a", title: undefined, open: 1 });
  assert.deepEqual(list.get("a"), { session_id: "a", title: "T", pinned: true, open: 1 });
  assert.equal(withoutSession(list, "a").size, 0);
  assert.equal(list.size, 1);
});

test("each source has one number, in the order in which they came", () => {
  const calls = [{ call_id: "1", sources: ["engram:x", "https://a.example/p"] }, { call_id: "2", sources: ["https://a.example/p", "report.pdf"] }, { call_id: "3" }];
  const found = sourcesOf({ tool_calls: calls });
  assert.deepEqual(found.map((one) => [one.number, one.kind, one.label]), [[1, "memory", "memory"], [2, "page", "a.example"], [3, "other", "report.pdf"]]);
  assert.deepEqual(found[1].calls, ["1", "2"]);
  assert.equal(hostOf("javascript:alert(1)"), "");
});

test("figures are said in words", () => {
  assert.deepEqual([0.0004, 0.044, 2.93, 42.4, 95, 7260].map(duration), ["1 ms", "44 ms", "2.9 s", "42 s", "1 min 35 s", "2 h 1 min"]);
  assert.deepEqual([3, 60, 3_000, 90_000, 400 * DAY].map(ago), ["just now", "1 minute ago", "50 minutes ago", "1 day ago", "400 days ago"]);
  assert.deepEqual([512, 2_048, 48_213, 3_400_000].map(bytes), ["512 B", "2.0 kB", "48 kB", "3.4 MB"]);
  assert.deepEqual([figure(1_234_567), counted(1, "tool"), counted(2, "tool")], ["1\u202f234\u202f567", "1 tool", "2 tools"]);
});

test("events are read from pieces of any size, comments and both line ends included", () => {
  const stream = ': hello\n\nid: a-1\nevent: token\ndata: {"text":\ndata: "x: y"}\n\r\nid: a-2\r\ndata: z\r\n\r\n';
  for (let size = 1; size < stream.length; size += 1) {
    const heard = [];
    const parser = new EventParser((event) => heard.push(event));
    for (let at = 0; at < stream.length; at += size) parser.feed(stream.slice(at, at + size));
    assert.deepEqual(heard.slice(0, 1), [{ id: "a-1", name: "token", data: '{"text":\n"x: y"}' }]);
    assert.deepEqual(heard.slice(1), [{ id: "a-2", name: "message", data: "z" }]);
  }
});
