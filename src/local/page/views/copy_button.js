/** Copies a text, and says that it did. */

import { html, useState } from "../html.js";
import { spoken } from "../state/store.js";
import { Act } from "./act.js";

/** With `isIcon` it looks like the other actions of a line. */
export function CopyButton({ text, what, label = "Copy", isIcon = false }) {
  const [done, mark] = useState("");
  const copy = async () => {
    const worked = await copied(text);
    mark(worked ? "Copied" : "Not copied");
    spoken.value = worked ? `${what} copied` : "the browser did not allow copying";
    setTimeout(() => mark(""), 2000);
  };
  if (isIcon) return html`<${Act} icon=${done === "Copied" ? "done" : "copy"} word=${done || label} label=${`${done || label}: ${what}`} act=${() => void copy()} />`;
  return html`<button type="button" class="quiet" aria-label=${`${done || label}: ${what}`} onClick=${copy}>${done || label}</button>`;
}

/** A page over plain http to another machine has no clipboard of its own; the old way still works there. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    document.body.append(field);
    field.select();
    const worked = document.execCommand("copy");
    field.remove();
    return worked;
  }
}
