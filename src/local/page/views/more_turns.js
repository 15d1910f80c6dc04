/** A button for turns that are not loaded: it loads them when the reader comes near, and when it is pressed. */

import { html, useEffect, useRef, useState } from "../html.js";
import { tell } from "../state/store.js";

const AHEAD = "800px"; // of what is in view

/** `which` is "Earlier" or "Later". After a failure it waits to be pressed. */
export function MoreTurns({ which, load }) {
  const [isLoading, mark] = useState(false);
  const button = useRef(null);
  const more = async () => {
    mark(true);
    await load().catch((failure) => tell(`${which} turns could not be read: ${failure.message}`));
    mark(false);
  };
  useEffect(() => {
    const near = new IntersectionObserver(
      ([{ isIntersecting }]) => {
        if (!isIntersecting) return;
        near.disconnect();
        void more();
      },
      { root: button.current.closest(".scroll"), rootMargin: `${AHEAD} 0px` }
    );
    near.observe(button.current);
    return () => near.disconnect();
  }, []);
  return html`<button type="button" ref=${button} class="earlier" disabled=${isLoading} onClick=${() => void more()}>${isLoading ? "Loading…" : `${which} turns`}</button>`;
}
