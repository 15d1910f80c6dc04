import { test } from "node:test";
import assert from "node:assert/strict";
import { byQuestion, countBelow, isOpen } from "../../src/local/page/core/agent_tree.js";
import { argumentsOf, lineOf, pairsOf, wordsOf } from "../../src/local/page/core/arguments.js";

const agent = (agent_id, root, parent_id = null, more = {}) => ({ agent_id, name: agent_id, parent_id, state: "READY", root_query_id: root, root_session_id: `s-${root}`, question: `${root}?`, made_at: 1, ended_at: null, ...more });

test("agents stand below the ones that made them, under their question, what runs first", () => {
  const ended = { state: "ENDED", ended_at: 9, made_at: 8 };
  const found = byQuestion([agent("a", "old", null, { ...ended, made_at: 2 }), agent("b", "new", null, ended), agent("c", "new", "b", ended), agent("d", "new", "c", ended), agent("e", "open")]);
  assert.deepEqual(found.map((one) => [one.question, one.session_id, one.isOpen, one.count]), [["open?", "s-open", true, 1], ["new?", "s-new", false, 3], ["old?", "s-old", false, 1]]);
  assert.equal(found[1].branches[0].below[0].below[0].agent.agent_id, "d");
  assert.equal(countBelow(found[1].branches[0]), 2);
  assert.deepEqual([isOpen(agent("a", "q")), isOpen(agent("a", "q", null, ended))], [true, false]);
});

test("an agent whose parent is not known is not lost", () => {
  assert.deepEqual(byQuestion([agent("a", "q", "gone")])[0].branches.map((one) => one.agent.agent_id), ["a"]);
});

test("arguments of a schema, whatever it is", () => {
  const schema = { required: ["path"], properties: { path: { type: "string", description: "Where" }, mode: { enum: ["a", "b"] }, many: { type: "array", items: { type: "integer" } }, maybe: { anyOf: [{ type: "string" }, { type: "null" }] }, odd: null } };
  assert.deepEqual(argumentsOf(schema).map(({ name, type, isRequired }) => [name, type, isRequired]), [["path", "string", true], ["mode", '"a" or "b"', false], ["many", "list of integer", false], ["maybe", "string or null", false], ["odd", "", false]]);
  for (const none of [null, "x", { properties: "x" }, { required: 3 }]) assert.deepEqual(argumentsOf(none), []);
});

test("a command is split as a shell splits it, and pairs are read by line", () => {
  assert.deepEqual(wordsOf(`python3  -S '/opt/my tools/a.py' "b \\" c" d\\ e ''`), ["python3", "-S", "/opt/my tools/a.py", 'b " c', "d e", ""]);
  const words = ["python3", "/opt/my tools/a.py", "it's", "", "${HOME}/x", '"', "a\\b"];
  assert.deepEqual(wordsOf(lineOf(words)), words);
  assert.equal(wordsOf("python3 'open"), null);
  assert.deepEqual(wordsOf("  "), []);
  assert.deepEqual(pairsOf("A=1\n\n B=x=y "), { pairs: { A: "1", B: "x=y" } });
  assert.match(pairsOf("A").trouble ?? "", /NAME=VALUE/);
});
