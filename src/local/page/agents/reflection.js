/** Dreams and thoughts: what LoCAL2 makes of conversations while nobody asks anything. */

import { html } from "../html.js";
import { counted, moment } from "../core/words.js";
import { Words } from "../parts/detail.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { inspect } from "../state/inspection.js";
import { addressOf } from "../state/screens.js";
import { now } from "../state/store.js";
import { Routine } from "./routine.js";

export function Reflection() {
  return html`<h2>Dreams</h2><p class="lead">Notes on what several conversations have in common. They are kept in the memory and can be recalled like anything else there. A dream may also propose a change of a skill or of <a href=${addressOf("memory", "soul")}>SOUL.md</a>; nothing changes before you approve it, there or at <a href=${addressOf("tools", "skills")}>Skills</a>.</p>
    <${Part} path="/dreams" name="Dreaming" verb="Dream now" what="It is dreaming." trouble="The dreams could not be read." list=${({ dreams }) => html`<${Notes} notes=${dreams.map(({ engram_id, ...dream }) => ({ ...dream, id: engram_id, engramId: engram_id, at: dream.until }))} empty="There is no dream yet. One is made when there are new conversations and nobody asks anything." />`} />
    <h2>Inner monologue</h2><p class="lead">Thoughts about recent conversations. No model ever reads them: they are for you alone.</p>
    <${Part} path="/monologue" name="The monologue" verb="Think now" what="It is thinking." trouble="The thoughts could not be read." list=${({ thoughts }) => html`<${Notes} notes=${thoughts.map((thought) => ({ ...thought, id: thought.thought_id }))} empty="There is no thought yet. Switch the monologue on, or have it think now." />`} />`;
}

function Part({ path, name, verb, what, trouble: sentence, list }) {
  const { data, trouble, reload } = useResource(path);
  useLive("reflection", reload);
  if (!data) return trouble ? html`<${Trouble} text=${sentence} failure=${trouble} act=${reload} />` : html`<${Loading} />`;
  return html`<${Routine} path=${path} state=${data} name=${name} verb=${verb} what=${what} done=${reload} />${list(data)}`;
}

function Notes({ notes, empty }) {
  if (!notes.length) return html`<${Empty}>${empty}</${Empty}>`;
  return html`<ul class="things">${notes.map((note) => html`<li key=${note.id}><${Words}>${note.text}</${Words}>
    <p><small>${[note.at ? moment(note.at, now.value) : "", `based on ${counted(note.sources.length, "exchange")}`, note.left_out ? `${note.left_out} left out, with untrusted content` : ""].filter(Boolean).join(" · ")}</small></p>
    <div class="row-acts">${note.engramId ? html`<button type="button" class="quiet edged" onClick=${() => inspect({ kind: "engram", engramId: note.engramId })}>Show it in the memory</button>` : null}
      ${note.sources.map((id, index) => html`<button type="button" class="quiet edged" key=${id} onClick=${() => inspect({ kind: "engram", engramId: id })}>Exchange ${index + 1}</button>`)}</div></li>`)}</ul>`;
}
