/**
 * Diagrams in Mermaid's language as places on a plane: flowcharts, states and sequences, which are what models mostly
 * draw. Mermaid itself is larger than all of this page together. Text widths are estimated, so that no page is needed.
 * Layered drawing: nodes get ranks by their longest way from a source, long edges get a place in each rank between, and
 * each rank is put into the order of its neighbours' middles some times.
 *
 * @typedef {{x: number, y: number, width: number, height: number, lines: string[], shape: string}} Box in its middle
 * @typedef {{points: [number, number][], label: string, isDashed: boolean, hasHead: boolean, at: [number, number]}} Line
 * @typedef {{width: number, height: number, boxes: Box[], lines: Line[], trouble?: undefined} | {trouble: string}} Diagram
 */

const MOST_CHARACTERS = 20_000;
const MOST_NODES = 150;
const MOST_CELLS = 1500; // with the places of long edges
const LONGEST_ROW = 500; // characters
const LINE = { characters: 26, height: 17, width: 7.3 };
const PAD = { x: 13, y: 9 };
const GAP = { across: 26, along: 54 };
const MARGIN = 12;
const BESIDE = 16; // by which a line back is beside the lines forward

/** @param {string} code @returns {Diagram} */
export function diagramOf(code) {
  if (code.length > MOST_CHARACTERS) return { trouble: "This diagram is too long to be drawn." };
  const rows = code.split(/\n|;(?=\s*\n|\s*$|\s*[\p{L}_])/u).map((row) => row.replace(/^\s*%%.*/, "").trim()).filter(Boolean);
  if (rows.some((row) => row.length > LONGEST_ROW)) return { trouble: "A line of this diagram is too long to be drawn." };
  const [head = "", ...rest] = rows;
  if (/^sequenceDiagram\b/.test(head)) return sequence(rest);
  const flow = /^(?:flowchart|graph)\s*(TB|TD|BT|LR|RL)?/.exec(head);
  if (flow) return drawn(flowchart(rest), flow[1] ?? "TD");
  if (/^stateDiagram/.test(head)) return drawn(states(rest), rest.some((row) => /^direction\s+LR/.test(row)) ? "LR" : "TD");
  return { trouble: "Only flowcharts, states and sequences are drawn; this is another kind of diagram." };
}

/** A text in lines that are not too long. */
export function wrapped(text) {
  const lines = [""];
  for (const word of text.replace(/<br\s*\/?>|\\n/gi, "\n").split(/(\n)| +/).filter(Boolean)) {
    if (word === "\n") lines.push("");
    else if (lines.at(-1) && lines.at(-1).length + word.length >= LINE.characters) lines.push(word);
    else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines.map((line) => (line.length > 60 ? `${line.slice(0, 59)}…` : line));
}

const widthOf = (lines) => Math.max(...lines.map((line) => line.length)) * LINE.width + 2 * PAD.x;

class Graph {
  constructor() {
    /** @type {Map<string, {id: string, text: string, shape: string}>} */
    this.nodes = new Map();
    /** @type {{from: string, to: string, label: string, isDashed: boolean, hasHead: boolean}[]} */
    this.edges = [];
  }

  node(id, text = "", shape = "") {
    const known = this.nodes.get(id) ?? { id, text: id, shape: "box" };
    this.nodes.set(id, { id, text: text || known.text, shape: shape || known.shape });
    return id;
  }

  edge(from, to, label = "", isDashed = false, hasHead = true) {
    this.edges.push({ from, to, label, isDashed, hasHead });
  }
}

const unquoted = (text) => text.trim().replace(/^"([^]*)"$/, "$1").replace(/#quot;/g, '"');

const OPENED = [["(((", ")))", "circle"], ["((", "))", "circle"], ["([", "])", "round"], ["[(", ")]", "round"], ["[[", "]]", "box"], ["{{", "}}", "round"], ["[", "]", "box"], ["(", ")", "round"], ["{", "}", "rhombus"], [">", "]", "box"]];
const NAMED_LINK = /^\s*<?(--|==|-\.)\s+("[^"]*"|[^\n]*?)\s+(?:-{2,}|={2,}|\.+-)([>xo]?)/;
const LINK = /^\s*[<xo]?(-{2,}|={2,}|-\.+-|~{3,})([>xo]?)\s*(?:\|([^|]*)\|)?/;

/** @param {string[]} rows */
function flowchart(rows) {
  const graph = new Graph();
  for (const row of rows) {
    if (/^(?:subgraph|end|style|classDef|class|click|linkStyle|direction)\b/.test(row)) continue;
    let rest = row;
    const together = () => {
      const ids = [];
      for (let found = nodeAt(rest); found; found = nodeAt(rest)) {
        ids.push(graph.node(found.id, found.text, found.shape));
        rest = found.rest;
        if (!/^\s*&/.test(rest)) break;
        rest = rest.replace(/^\s*&\s*/, "");
      }
      return ids;
    };
    let before = together();
    while (before.length && rest.trim()) {
      const named = NAMED_LINK.exec(rest);
      const link = named ?? LINK.exec(rest);
      if (!link) break;
      const [kind, head, label] = named ? [link[1], link[3], link[2]] : [link[1], link[2], link[3] ?? ""];
      rest = rest.slice(link[0].length);
      const after = together();
      for (const from of before) for (const to of after) graph.edge(from, to, unquoted(label), kind.includes("."), head !== "");
      before = after;
    }
  }
  return graph;
}

function nodeAt(text) {
  const found = /^\s*([\p{L}\p{N}_]+)/u.exec(text);
  if (!found) return null;
  let rest = text.slice(found[0].length);
  let [label, shape] = ["", ""];
  const opened = OPENED.find(([open]) => rest.startsWith(open));
  if (opened) {
    const [open, close, kind] = opened;
    const isQuoted = rest[open.length] === '"';
    const end = isQuoted ? rest.indexOf(`"${close}`, open.length + 1) + 1 : rest.indexOf(close, open.length);
    if (end > 0) {
      [label, shape] = [unquoted(rest.slice(open.length, end)).replace(/^[/\\]|[/\\]$/g, ""), kind];
      rest = rest.slice(end + close.length);
    }
  }
  return { id: found[1], text: label, shape, rest: rest.replace(/^:::\w+/, "") };
}

/** @param {string[]} rows */
function states(rows) {
  const graph = new Graph();
  const place = (name, isEnd) => (name === "[*]" ? graph.node(isEnd ? "[end]" : "[begin]", isEnd ? "end" : "start", "round") : graph.node(name, "", "round"));
  for (const row of rows) {
    const named = /^state\s+"([^"]+)"\s+as\s+(\S+)/.exec(row);
    const moved = /^(\S+)\s*-->\s*(\S+?)\s*(?::\s*(.*))?$/.exec(row);
    const told = /^([\p{L}\p{N}_]+)\s*:\s*(.+)$/u.exec(row);
    if (named) graph.node(named[2], named[1], "round");
    else if (moved) graph.edge(place(moved[1], false), place(moved[2], true), moved[3] ?? "");
    else if (told) graph.node(told[1], told[2], "round");
  }
  return graph;
}

/** @param {Graph} graph @param {string} direction @returns {Diagram} */
function drawn(graph, direction) {
  if (!graph.nodes.size) return { trouble: "There is nothing in this diagram that could be drawn." };
  if (graph.nodes.size > MOST_NODES || graph.edges.length > 2 * MOST_NODES) return { trouble: "This diagram is too large to be drawn." };
  const isFlat = direction === "LR" || direction === "RL";
  const isBackwards = direction === "BT" || direction === "RL";
  const cells = new Map([...graph.nodes.values()].map((node) => [node.id, cellOf(node, isFlat)]));
  const chains = ranked(graph, cells);
  if (cells.size > MOST_CELLS) return { trouble: "This diagram is too large to be drawn." };
  /** @type {any[][]} */
  const ranks = [];
  for (const cell of cells.values()) (ranks[cell.rank] ??= []).push(cell);
  ordered(ranks, chains);
  let along = MARGIN;
  const widest = Math.max(...ranks.map((rank) => rank.reduce((sum, cell) => sum + cell.across + GAP.across, -GAP.across)));
  for (const rank of ranks) {
    const deepest = Math.max(...rank.map((cell) => cell.along));
    let across = MARGIN + (widest - rank.reduce((sum, cell) => sum + cell.across + GAP.across, -GAP.across)) / 2;
    for (const cell of rank) {
      [cell.a, cell.b] = [across + cell.across / 2, along + deepest / 2];
      across += cell.across + GAP.across;
    }
    along += deepest + GAP.along;
  }
  const depth = along - GAP.along + MARGIN;
  const put = (a, b) => /** @type {[number, number]} */ (isFlat ? [isBackwards ? depth - b : b, a] : [a, isBackwards ? depth - b : b]);
  const boxes = [...cells.values()].filter((cell) => cell.lines).map(({ a, b, width, height, lines, shape }) => ({ x: put(a, b)[0], y: put(a, b)[1], width, height, lines, shape }));
  const lines = chains.map(({ edge, chain, isTurned }) => {
    const [first, last] = [chain[0], chain.at(-1)];
    const places = first === last
      ? [[first.a + first.across / 2, first.b - 6], [first.a + first.across / 2 + 22, first.b], [first.a + first.across / 2, first.b + 6]]
      : [[first.a, first.b + first.along / 2], ...chain.slice(1, -1).map((cell) => [cell.a, cell.b]), [last.a, last.b - last.along / 2]];
    const points = places.map(([a, b]) => put(isTurned ? a + BESIDE : a, b));
    const middle = Math.floor(points.length / 2);
    const at = /** @type {[number, number]} */ (points.length % 2 ? points[middle] : [(points[middle - 1][0] + points[middle][0]) / 2, (points[middle - 1][1] + points[middle][1]) / 2]);
    return { points: isTurned ? points.reverse() : points, label: edge.label, isDashed: edge.isDashed, hasHead: edge.hasHead, at };
  });
  const size = isFlat ? [depth, widest + 2 * MARGIN] : [widest + 2 * MARGIN, depth];
  return { width: size[0] + 30, height: size[1], boxes, lines };
}

function cellOf({ text, shape }, isFlat) {
  const lines = wrapped(text);
  const room = shape === "rhombus" ? 1.5 : 1;
  const width = widthOf(lines) * room;
  const height = (lines.length * LINE.height + 2 * PAD.y) * room;
  return { lines, shape, width, height, across: isFlat ? height : width, along: isFlat ? width : height, rank: 0, a: 0, b: 0 };
}

/** Give each cell its rank, and each edge the chain of cells that it goes through, from the lower rank to the higher. */
function ranked(graph, cells) {
  const next = new Map([...cells.keys()].map((id) => [id, []]));
  const state = new Map();
  const order = [];
  for (const edge of graph.edges) next.get(edge.from).push(edge);
  const turned = new Set(graph.edges.filter((edge) => edge.from === edge.to));
  const walk = (id) => {
    state.set(id, "open");
    for (const edge of next.get(id)) {
      if (state.get(edge.to) === "open") turned.add(edge);
      else if (!state.has(edge.to)) walk(edge.to);
    }
    state.set(id, "done");
    order.unshift(id);
  };
  for (const id of cells.keys()) if (!state.has(id)) walk(id);
  for (const id of order) {
    for (const edge of next.get(id)) if (!turned.has(edge)) cells.get(edge.to).rank = Math.max(cells.get(edge.to).rank, cells.get(id).rank + 1);
  }
  return graph.edges.map((edge, index) => {
    const isTurned = turned.has(edge) && edge.from !== edge.to;
    const [from, to] = isTurned ? [cells.get(edge.to), cells.get(edge.from)] : [cells.get(edge.from), cells.get(edge.to)];
    const chain = [from];
    for (let rank = from.rank + 1; rank < to.rank; rank += 1) {
      const cell = { rank, across: 12, along: 0, a: 0, b: 0 };
      cells.set(`${index} ${rank}`, cell);
      chain.push(cell);
    }
    chain.push(to);
    return { edge, chain, isTurned };
  });
}

const SWEEPS = 6;

function ordered(ranks, chains) {
  const pairs = chains.flatMap(({ chain }) => chain.slice(1).map((cell, index) => [chain[index], cell])).filter(([one, other]) => one !== other);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const rank of isDown ? ranks : [...ranks].reverse()) {
      const places = new Map(ranks.flatMap((one) => one.map((cell, index) => [cell, index - one.length / 2])));
      const middle = (cell) => {
        const near = pairs.flatMap(([one, other]) => (isDown && other === cell ? [places.get(one)] : !isDown && one === cell ? [places.get(other)] : []));
        return near.length ? near.reduce((sum, place) => sum + place, 0) / near.length : places.get(cell);
      };
      const wanted = new Map(rank.map((cell) => [cell, middle(cell)]));
      rank.sort((one, other) => wanted.get(one) - wanted.get(other));
    }
  }
}

const MESSAGE = /^([^-:+]+?)\s*(--?>>|--?>|--?x|--?\))\s*[+-]?\s*([^:]+?)\s*:\s*(.*)$/;

/** @param {string[]} rows @returns {Diagram} */
function sequence(rows) {
  /** @type {Map<string, string>} */
  const names = new Map();
  const steps = [];
  const known = (id) => (names.has(id) || names.set(id, id), id);
  for (const row of rows) {
    const actor = /^(?:participant|actor)\s+(\S+)(?:\s+as\s+(.+))?$/.exec(row);
    const note = /^note\s+(?:over|left of|right of)\s+([^:,]+)(?:,\s*([^:]+))?:\s*(.*)$/i.exec(row);
    const part = /^(loop|alt|else|opt|par|and|critical|option|break)\b\s*(.*)$/.exec(row);
    const message = MESSAGE.exec(row);
    if (actor) names.set(actor[1], actor[2] ?? actor[1]);
    else if (note) steps.push({ note: wrapped(note[3]), from: known(note[1].trim()), to: known((note[2] ?? note[1]).trim()) });
    else if (part) steps.push({ part: `${part[1]} ${part[2]}`.trim() });
    else if (message) steps.push({ label: message[4], from: known(message[1]), to: known(message[3]), isDashed: message[2].startsWith("--"), hasHead: !message[2].endsWith("->") || message[2].endsWith(">>") });
  }
  if (!names.size) return { trouble: "There is nothing in this diagram that could be drawn." };
  if (names.size > 20 || steps.length > 4 * MOST_NODES) return { trouble: "This diagram is too large to be drawn." };
  const ids = [...names.keys()];
  const widest = Math.max(...steps.map((step) => (step.label ?? "").length * LINE.width + 30), ...ids.map((id) => widthOf(wrapped(names.get(id))) + GAP.across), 110);
  const apart = Math.min(widest, 260);
  const at = (id) => MARGIN + apart / 2 + ids.indexOf(id) * apart;
  /** @type {Box[]} */
  const boxes = ids.map((id) => ({ x: at(id), y: MARGIN + 20, width: Math.min(apart - 12, widthOf(wrapped(names.get(id)))), height: 38, lines: wrapped(names.get(id)).slice(0, 2), shape: "box" }));
  /** @type {Line[]} */
  const lines = [];
  let y = MARGIN + 66;
  for (const { label = "", from = "", to = "", note, part, isDashed = false, hasHead = true } of steps) {
    if (part) {
      lines.push({ points: [[MARGIN, y], [MARGIN + ids.length * apart, y]], label: part, isDashed: true, hasHead: false, at: [MARGIN + 8 + (part.length * LINE.width) / 2, y] });
    } else if (note) {
      const height = note.length * LINE.height + PAD.y;
      boxes.push({ x: (at(from) + at(to)) / 2, y: y - 10 + height / 2, width: Math.max(widthOf(note), Math.abs(at(to) - at(from)) + 60), height, lines: note, shape: "note" });
      y += height - 14;
    } else if (from === to) lines.push({ points: [[at(from), y - 6], [at(from) + 34, y], [at(from), y + 10]], label, isDashed, hasHead, at: [at(from) + 44 + (label.length * LINE.width) / 2, y + 2] });
    else lines.push({ points: [[at(from), y], [at(to), y]], label, isDashed, hasHead, at: [(at(from) + at(to)) / 2, y - 9] });
    y += 36;
  }
  for (const id of ids) lines.unshift({ points: [[at(id), MARGIN + 39], [at(id), y]], label: "", isDashed: true, hasHead: false, at: [0, 0] });
  return { width: ids.length * apart + 2 * MARGIN, height: y + MARGIN, boxes, lines };
}
