/** A question that is tried with one press: it is put into a new conversation, for its user to send. */

import { html } from "../html.js";
import { begin } from "../state/commands.js";
import { changeDraft, NEW } from "../state/drafts.js";

export function Example({ ask }) {
  const take = () => {
    begin(false);
    changeDraft(NEW, { text: ask });
  };
  return html` <button type="button" class="edged example" onClick=${take}>Try “${ask}”</button>`;
}
