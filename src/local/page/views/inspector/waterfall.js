/** The waterfall: a row for each span, with a view that can be moved and narrowed by keys, wheel and buttons. */

import { html, useEffect, useRef, useState } from "../../html.js";
import { panned, placed, ticks, zoomed } from "../../core/waterfall.js";
import { duration } from "../../core/words.js";
import { RowWindow } from "../row_window.js";

const STEP = 0.6; // of a zoom by a key or a button

/** @param {{fall: any, chosen: string | null, choose: (id: string | null) => void, moment?: number | null}} given `moment` is marked by a line */
export function Waterfall({ fall, chosen, choose, moment = null }) {
  const [own, look] = useState(null);
  const view = own ?? fall.whole;
  const box = useRef(null);
  const change = (next) => look(isWhole(next, fall.whole) ? null : next);
  const acts = {
    nearer: (share) => change(zoomed(view, fall.whole, STEP, share)),
    farther: (share) => change(zoomed(view, fall.whole, 1 / STEP, share)),
    move: (share) => change(panned(view, fall.whole, share)),
    all: () => look(null),
  };
  const latest = useRef(acts);
  latest.current = acts;
  useEffect(() => onWheel(box.current, latest), []);
  const marks = ticks(view, fall.whole, 4);
  return html`<div class="fall" ref=${box} role="group" aria-label="Waterfall" data-rows=${fall.rows.length} onKeyDown=${(event) => onKey(event, acts)}>
    <div class="fall-head"><span class="fall-zoom" role="group" aria-label="Shown time range">
        <button type="button" class="quiet" aria-label="Zoom in" onClick=${() => acts.nearer()}>+</button>
        <button type="button" class="quiet" aria-label="Zoom out" disabled=${!own} onClick=${() => acts.farther()}>−</button>
        <button type="button" class="quiet" disabled=${!own} onClick=${acts.all}>All</button></span>
      <svg class="fall-axis" aria-hidden="true">${marks.map((mark) => html`<${Tick} key=${mark.after} mark=${mark} view=${view} />`)}</svg></div>
    <div class="fall-body">
      <${Grid} marks=${marks} fall=${fall} view=${view} moment=${moment} />
      <${RowWindow} rows=${fall.rows} className="fall-rows" label="Steps in order" draw=${(row) => html`<${Row} key=${row.span.id} row=${row} view=${view} from=${fall.whole.from} isChosen=${row.span.id === chosen} choose=${choose} />`} />
    </div>
  </div>`;
}

function isWhole(view, whole) {
  return view.to - view.from >= whole.to - whole.from - 1e-9;
}

function Tick({ mark, view }) {
  const at = placed(mark.at, view);
  return at > 92 ? null : html`<text x=${`${at}%`} dx="3" y="12">${mark.after < 1e-9 ? "0" : axis(mark.after)}</text>`;
}

function axis(seconds) {
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(3))} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  return duration(seconds);
}

/** Lines through all rows: the axis, the attempts, the answer. */
function Grid({ marks, fall, view, moment }) {
  const line = (at, name, key) => html`<line key=${key} class=${name} x1=${`${placed(at, view)}%`} x2=${`${placed(at, view)}%`} y1="0" y2="100%" />`;
  return html`<svg class="fall-grid" aria-hidden="true">
    ${marks.map((mark) => line(mark.at, "tick", mark.after))}
    ${fall.fences.map((fence) => line(fence.at, "fence", `attempt ${fence.attempt}`))}
    ${fall.answeredAt ? line(fall.answeredAt, "answered", "answered") : null}
    ${moment === null ? null : line(moment, "moment", "moment")}
  </svg>`;
}

function Row({ row, view, from, isChosen, choose }) {
  const { span } = row;
  const x = placed(row.from, view);
  const width = placed(row.to, view) - x;
  const took = row.isOpen ? "runs" : duration(row.to - row.from);
  const first = row.firstWord === null ? 0 : placed(row.firstWord, view) - x;
  const words = [row.label, `after ${duration(row.from - from) || "0"}`, row.isOpen ? "still running" : `took ${took}`, row.isCritical ? "on the critical path" : "", span.attempt > 1 ? `attempt ${span.attempt}` : ""];
  return html`<li class=${`${row.isCritical ? "crit " : ""}${row.isAfter ? "after " : ""}${row.isOpen ? "running " : ""}depth-${row.depth}`}>
    <button type="button" aria-pressed=${isChosen} aria-label=${words.filter(Boolean).join(", ")} onClick=${() => choose(isChosen ? null : span.id)}>
      <span class="name" title=${row.label}>${row.label}</span>
      <svg class="bar-of" width="100%" height="12" aria-hidden="true"><rect class=${`k-${span.kind}`} x=${`${x}%`} width=${`${Math.max(0, width)}%`} height="12" rx="2" />${first > 0 ? html`<rect class="first" x=${`${x}%`} width=${`${Math.min(first, width)}%`} height="12" rx="2" />` : null}${width < 0.8 && x > -5 && x < 105 ? html`<rect class=${`k-${span.kind}`} x=${`${x}%`} width="2" height="12" />` : null}</svg>
      <em class="num">${took}</em>
    </button>
  </li>`;
}

const KEYS = {
  "+": (acts) => acts.nearer(), "=": (acts) => acts.nearer(), "-": (acts) => acts.farther(), 0: (acts) => acts.all(),
  ArrowLeft: (acts) => acts.move(-0.2), ArrowRight: (acts) => acts.move(0.2), Home: (acts) => acts.move(-1e9), End: (acts) => acts.move(1e9),
};

function onKey(event, acts) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key](acts);
}

/** Ctrl and the wheel narrow the view about the pointer, a wheel sideways moves it; otherwise the page scrolls. */
function onWheel(box, latest) {
  const turn = (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!event.ctrlKey && !event.metaKey && !sideways) return;
    event.preventDefault();
    const area = box.querySelector(".fall-grid").getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - area.left) / area.width));
    if (sideways && !event.ctrlKey && !event.metaKey) latest.current.move((event.deltaX || event.deltaY) / area.width);
    else if (event.deltaY < 0) latest.current.nearer(share);
    else latest.current.farther(share);
  };
  box.addEventListener("wheel", turn, { passive: false });
  return () => box.removeEventListener("wheel", turn);
}
