import { test } from "node:test";
import assert from "node:assert/strict";
import { diagramOf, wrapped } from "../../src/local/page/core/diagram.js";

const FLOW = `flowchart TD
  %% a remark
  A["Start (now)"] --> B{Is it good?}
  B -->|Yes| C([Ship it])
  B -- No, not yet --> D[Fix]:::late; D --> B
  C & D -.-> E((End))
  classDef late fill:#f00`;

test("a flowchart has its boxes in ranks, and its lines between them with their words", () => {
  const { boxes, lines, width, height } = diagramOf(FLOW);
  assert.deepEqual(boxes.map((box) => [box.lines.join(" "), box.shape]), [["Start (now)", "box"], ["Is it good?", "rhombus"], ["Ship it", "round"], ["Fix", "box"], ["End", "circle"]]);
  const [start, asked, ship, fix, end] = boxes.map((box) => box.y);
  assert.ok(start < asked && asked < ship && ship === fix && fix < end);
  assert.deepEqual(lines.map((line) => line.label), ["", "Yes", "No, not yet", "", "", ""]);
  assert.deepEqual(lines.map((line) => line.isDashed), [false, false, false, false, true, true]);
  for (const { x, y, width: wide, height: tall } of boxes) assert.ok(x - wide / 2 >= 0 && x + wide / 2 <= width && y - tall / 2 >= 0 && y + tall / 2 <= height);
  for (const one of boxes) for (const other of boxes) assert.ok(one === other || Math.abs(one.x - other.x) >= (one.width + other.width) / 2 || Math.abs(one.y - other.y) >= (one.height + other.height) / 2, "boxes overlap");
});

test("a flowchart from left to right grows to the right", () => {
  const { boxes } = diagramOf("graph LR\nA --> B --> C\nA --> C");
  assert.deepEqual(boxes.map((box) => box.lines[0]), ["A", "B", "C"]);
  assert.ok(boxes[0].x < boxes[1].x && boxes[1].x < boxes[2].x);
});

test("a sequence has its actors side by side and its messages below each other", () => {
  const { boxes, lines } = diagramOf("sequenceDiagram\nparticipant A as Alice\nA->>+B: Hello: you\nB-->>-A: Hi\nloop daily\nA->>A: think\nend\nNote over A,B: Done");
  assert.deepEqual(boxes.map((box) => box.lines[0]), ["Alice", "B", "Done"]);
  assert.deepEqual(lines.map((line) => line.label).filter(Boolean), ["Hello: you", "Hi", "loop daily", "think"]);
});

test("states are drawn from their start to their end", () => {
  const { boxes, lines } = diagramOf("stateDiagram-v2\n[*] --> Still\nStill --> Moving : push\nMoving --> Still\nMoving --> [*]");
  assert.deepEqual(boxes.map((box) => box.lines[0]), ["start", "Still", "Moving", "end"]);
  assert.equal(lines[1].label, "push");
});

test("what is no such diagram, empty or too large is a sentence", () => {
  assert.match(diagramOf("pie\n\"a\": 1").trouble, /Only flowcharts/);
  assert.match(diagramOf("graph TD").trouble, /nothing/);
  assert.match(diagramOf(`graph TD\n${Array.from({ length: 200 }, (_, index) => `a${index} --> b${index}`).join("\n")}`).trouble, /too large/);
  assert.match(diagramOf("graph TD\n".padEnd(30000, "A")).trouble, /too long/);
});

test("long words are wrapped, and cut where they cannot be", () => {
  assert.deepEqual(wrapped("one two<br>three"), ["one two", "three"]);
  assert.equal(wrapped("x".repeat(100))[0].length, 60);
});
