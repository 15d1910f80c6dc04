import { test } from "node:test";
import assert from "node:assert/strict";
import { matched, pieces, ranked } from "../../src/local/page/core/match.js";

const best = (typed, ...texts) => ranked(texts, typed, (text) => text).map(({ item }) => item);

test("what begins with what was typed comes before what has it inside", () => {
  assert.deepEqual(best("con", "Second", "New conversation", "Conversation"), ["Conversation", "New conversation", "Second"]);
});

test("initials and several words in any order are enough", () => {
  assert.deepEqual(best("nc", "Find in this conversation", "New conversation"), ["New conversation"]);
  assert.deepEqual(best("coffee trip", "Trip for coffee", "Coffee"), ["Trip for coffee"]);
});

test("letters that are only somewhere in the text are no match", () => {
  assert.equal(matched("Delete this conversation", "xyz"), null);
  assert.equal(matched("Delete this conversation", "lthis"), null);
});

test("nothing typed keeps the order, and is limited", () => {
  assert.deepEqual(ranked(["b", "a", "c"], " ", (text) => text, 2).map(({ item }) => item), ["b", "a"]);
});

test("marks say which letters answered, and pieces are the whole text", () => {
  const { marks } = matched("New conversation", "conv");
  assert.deepEqual(pieces("New conversation", marks), [["New ", false], ["conv", true], ["ersation", false]]);
});

test("any letters of any script may be typed", () => {
  assert.deepEqual(best("zür", "Reise nach Zürich", "Berlin"), ["Reise nach Zürich"]);
  assert.deepEqual(best("(*[", "a (*[ b", "c"), ["a (*[ b"]);
});

test("a thing is found by other words for it, after those whose names answer", () => {
  const items = [{ title: "Users", words: "invite family" }, { title: "Log", words: "errors" }, { title: "Invited by mail", words: "" }];
  const found = (typed) => ranked(items, typed, (one) => one.title, 9, (one) => one.words).map(({ item }) => item.title);
  assert.deepEqual(found("invit"), ["Invited by mail", "Users"]);
  assert.deepEqual(found("family users"), ["Users"]);
  assert.deepEqual(found("rors"), []);
});
