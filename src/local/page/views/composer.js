/** Where questions are written. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { edit, isSecret, stop, submit } from "../state/actions.js";
import { changeDraft, draftOf } from "../state/drafts.js";
import { attach } from "../state/files.js";
import { askAs, chooseMode, modeOf, settingsOf } from "../state/choices.js";
import { conversationOf } from "../state/conversation.js";
import { isIncognito } from "../state/store.js";
import { FileChips } from "./file_chips.js";

const TALLEST = 0.4; // of the window

export function Composer({ sessionId }) {
  const draft = draftOf(sessionId);
  const [isOver, drop] = useState(false);
  const field = useField(draft.text);
  const write = (text) => changeDraft(sessionId, { text }, !(sessionId ? isSecret(sessionId) : isIncognito.value));
  const send = (event) => {
    event?.preventDefault();
    void submit();
    field.current?.focus();
  };
  const take = (event, list) => {
    const files = [...(list ?? [])];
    if (!files.length) return;
    event.preventDefault();
    attach(sessionId, files);
  };
  return html`<form class="composer" data-over=${isOver} onSubmit=${send}
    onDragOver=${(event) => (event.preventDefault(), drop(true))} onDragLeave=${() => drop(false)}
    onDrop=${(event) => (drop(false), take(event, event.dataTransfer?.files))}>
    ${draft.replaces ? html`<p class="replaces"><span>Asking again starts another version of the conversation.</span> <button type="button" onClick=${() => changeDraft(sessionId, { text: "", files: [], replaces: null })}>Keep the old one</button></p>` : null}
    <${FileChips} sessionId=${sessionId} files=${draft.files} />
    <textarea id="question" ref=${field} rows="1" dir="auto" enterkeyhint="send" aria-label="Your message" placeholder="Ask, or drop a file" value=${draft.text}
      onInput=${(event) => write(event.target.value)} onKeyDown=${(event) => key(event, sessionId, draft, send)}
      onPaste=${(event) => take(event, event.clipboardData?.files)}></textarea>
    <${Row} sessionId=${sessionId} draft=${draft} />
  </form>`;
}

function Row({ sessionId, draft }) {
  const input = useRef(null);
  const running = sessionId ? conversationOf(sessionId).order.value.filter((id) => conversationOf(sessionId).turns.get(id).value.status === "open") : [];
  const choose = (event) => {
    attach(sessionId, [...event.target.files]);
    event.target.value = "";
  };
  const { profile } = settingsOf(sessionId);
  const mode = modeOf(sessionId);
  const isSending = draft.files.some((file) => file.state === "sending");
  const word = isSending ? "Sending file…" : draft.replaces ? "Ask again" : running.length ? "Queue" : "Send";
  return html`<div class="composer-row">
    <input ref=${input} type="file" multiple hidden aria-label="Files" onChange=${choose} />
    <button type="button" onClick=${() => input.current.click()}>Attach</button>
    ${profile ? html`<button type="button" title="Use the general profile again" onClick=${() => askAs("general")}>as ${profile} ×</button>` : null}
    ${mode ? html`<button type="button" title="Use the permissions of the settings again" onClick=${() => chooseMode(sessionId, null)}>${mode.title} ×</button>` : null}
    <span class="push"></span>
    ${running.length ? null : html`<small class="hint"><kbd>⏎</kbd> sends <kbd>⇧⏎</kbd> new line</small>`}
    ${running.length ? html`<button type="button" class="stop-now" onClick=${() => void stop(running[0])}>Stop <kbd>Esc</kbd></button>` : null}
    ${running.length && !draft.text.trim() ? null : html`<button type="submit" class="accent" disabled=${!draft.text.trim() || isSending}>${word}</button>`}
  </div>`;
}

function key(event, sessionId, draft, send) {
  if (event.isComposing) return;
  const isPlain = !event.shiftKey && !event.altKey;
  if (event.key === "Enter" && isPlain && !isTouch()) send(event);
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  else if (event.key === "ArrowUp" && !draft.text && sessionId) last(event, sessionId);
  else if (event.key === "Escape" && draft.replaces) {
    event.preventDefault();
    changeDraft(sessionId, { text: "", files: [], replaces: null });
  }
}

function last(event, sessionId) {
  const conversation = conversationOf(sessionId);
  const id = conversation.order.peek().at(-1);
  if (!id) return;
  event.preventDefault();
  void edit(conversation.turns.get(id).peek());
}

/** On a screen keyboard the return key makes a line; the button sends. */
function isTouch() {
  return matchMedia("(hover: none) and (pointer: coarse)").matches;
}

/** The field grows with its text. */
function useField(text) {
  const field = useRef(null);
  useLayoutEffect(() => {
    const node = field.current;
    node.style.height = "auto";
    node.style.height = `${Math.min(node.scrollHeight, innerHeight * TALLEST)}px`;
  }, [text]);
  useEffect(() => {
    if (!isTouch() && !document.activeElement?.closest(".versions")) field.current?.focus(); // who goes through versions stays there
  }, []);
  return field;
}
