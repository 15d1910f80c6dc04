/** A diagram that a model wrote in Mermaid's language, drawn of nodes: no text of it becomes HTML. */

import { html, useId, useMemo } from "../html.js";
import { diagramOf } from "../core/diagram.js";
import { sheet } from "../parts/sheet.js";

await sheet("../style/diagram.css", import.meta.url);

export function Diagram({ code }) {
  const found = useMemo(() => diagramOf(code), [code]);
  const id = useId();
  if (found.trouble !== undefined) return html`<p class="preview-note" role="status">${found.trouble}</p>`;
  const { width, height, boxes, lines } = found;
  return html`<div class="diagram" tabindex="0" role="region" aria-label="Diagram of the code above"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${`A diagram with ${boxes.length} parts; its text is above`}>
    <defs><marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${lines.map((line, index) => html`<path key=${index} class=${line.isDashed ? "line dashed" : "line"} d=${curve(line.points)} marker-end=${line.hasHead ? `url(#${id})` : null} />`)}
    ${boxes.map((box, index) => html`<${Box} key=${index} box=${box} />`)}
    ${lines.filter((line) => line.label).map((line, index) => html`<text key=${index} class="label" x=${line.at[0]} y=${line.at[1]}>${line.label.length > 60 ? `${line.label.slice(0, 59)}…` : line.label}</text>`)}
  </svg></div>`;
}

function Box({ box: { x, y, width, height, lines, shape } }) {
  const round = { round: 14, circle: height / 2 }[shape] ?? 4;
  return html`<g class=${shape}>${shape === "rhombus"
      ? html`<path d=${`M${x} ${y - height / 2}L${x + width / 2} ${y}L${x} ${y + height / 2}L${x - width / 2} ${y}z`} />`
      : html`<rect x=${x - width / 2} y=${y - height / 2} width=${width} height=${height} rx=${round} />`}
    ${lines.map((line, index) => html`<text key=${index} x=${x} y=${y + (index - (lines.length - 1) / 2) * 17}>${line}</text>`)}</g>`;
}

/** A line through the points that bends half-way between each two. */
function curve(points) {
  const [first, ...rest] = points;
  let [x, y] = first;
  const isFlat = Math.abs(points.at(-1)[0] - first[0]) > Math.abs(points.at(-1)[1] - first[1]);
  return rest.reduce((path, [toX, toY]) => {
    const bent = isFlat ? `C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY}` : `C${x} ${(y + toY) / 2} ${toX} ${(y + toY) / 2}`;
    [x, y] = [toX, toY];
    return `${path}${bent} ${toX} ${toY}`;
  }, `M${x} ${y}`);
}
