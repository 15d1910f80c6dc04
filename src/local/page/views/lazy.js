/** A view whose file is fetched when the page has time, and at the latest when it is first shown. */

import { effect, html, useEffect, useState } from "../html.js";

/**
 * @param {() => Promise<any>} load gives the component
 * @param {() => boolean} isNear reads signals: whether somebody may soon want it; before that it is not fetched
 * @param {any} Missing is shown where it cannot be had
 */
export function lazy(load, isNear = () => true, Missing = Unfetched) {
  let known = null;
  const fetched = () => load().then((component) => (known = component));
  const idle = globalThis.requestIdleCallback ?? setTimeout;
  effect(() => {
    if (isNear() && !known) idle(() => void fetched().catch(() => {})); // it is tried again when it is shown
  });
  return function Lazy(props) {
    const [Inside, put] = useState(() => known);
    useEffect(() => {
      if (!Inside) fetched().then((component) => put(() => component), () => put(() => Missing));
    }, []);
    return Inside ? html`<${Inside} ...${props} />` : null;
  };
}

export const UNFETCHED = "This part of the page could not be loaded: LoCAL2 does not answer.";

function Unfetched() {
  return html`<p class="trouble" role="status">${UNFETCHED}</p>`;
}
