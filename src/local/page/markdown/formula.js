/** A formula: as it was written until what draws it is loaded, and permanently where that cannot read it. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";

const LIMITS = { throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 200] };

/** `tex` as it is written within its marks; `raw` with them. */
export function Formula({ tex, raw, isDisplay }) {
  const box = useRef(null);
  const [drawn, mark] = useState("");
  useLayoutEffect(() => {
    let isWanted = true;
    void loaded().then((temml) => {
      if (isWanted) mark(draw(temml, tex, box.current, isDisplay) ? tex : "");
    });
    return () => void (isWanted = false);
  }, [tex, isDisplay]);
  const isDrawn = drawn === tex;
  const more = isDisplay ? { role: "group", tabindex: 0, "aria-label": "Formula" } : {};
  return html`<span class=${isDisplay ? "formula display" : "formula"} ...${more}><span ref=${box} hidden=${!isDrawn}></span>${isDrawn ? null : html`<code dir="ltr">${raw}</code>`}</span>`;
}

let drawing = null;

/** What draws them; null where it could not be loaded. */
function loaded() {
  drawing ??= import("../vendor/temml.js").then((module) => module.default, () => null);
  return drawing;
}

/** MathML in the place of what was there; whether it could be read. */
function draw(temml, tex, box, displayMode) {
  try {
    temml?.render(tex, box, { ...LIMITS, displayMode });
    return temml !== null;
  } catch {
    return false;
  }
}
