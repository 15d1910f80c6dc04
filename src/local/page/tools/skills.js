/** Skills: which there are, what they say, those that wait for an approval, and changes that were proposed. */

import { html, useState } from "../html.js";
import { bytes } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Back, Code, Facts, State } from "../parts/detail.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { Versions } from "../parts/versions.js";
import { addressOf } from "../state/screens.js";
import { ownerRequest } from "../state/system.js";
import { Review } from "./review.js";

const STATES = { ready: ["good", "ready"], broken: ["bad", "broken"], incomplete: ["bad", "a program is missing"], unapproved: ["busy", "waits for your approval"], hidden: ["off", "hidden by another one"] };
const PLACES = { settings: "your settings", extra: "a folder that you named", workspace: "the workspace" };

const COLUMNS = [
  { id: "name", title: "Skill", value: (row) => row.name, show: (row) => html`<a href=${addressOf("tools", "skills", row.folder)}>${row.name}</a>` },
  { id: "for", title: "What it is for", show: (row) => html`<span dir="auto">${row.description}</span>${row.error ? html` <small>${row.error}</small>` : null}`, isWide: true },
  { id: "place", title: "From", value: (row) => PLACES[row.place] ?? row.place },
  { id: "status", title: "State", value: (row) => row.status, show: (row) => html`<${SkillState} skill=${row} />${row.isProposed ? html` <span class="tag">change proposed</span>` : null}` },
];

function SkillState({ skill }) {
  const [tone, word] = STATES[skill.status] ?? ["off", skill.status];
  return html`<${State} state=${tone}>${word}</${State}>`;
}

export function Skills() {
  const { data, trouble, reload } = useResource("/skills");
  const known = new Set(data?.skills.map((one) => one.name));
  const rows = data?.skills.map((one) => ({ ...one, isProposed: data.proposed.includes(one.name) })) ?? [];
  const others = data?.proposed.filter((name) => !known.has(name)) ?? [];
  return html`${trouble ? html`<${Trouble} text="The skills could not be read." failure=${trouble} act=${reload} />` : null}
    ${rows.length ? html`<${Table} label="Skills" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.folder} />` : null}
    ${data && !rows.length ? html`<${Empty}>There is no skill. Make one below, or put a folder with a SKILL.md into ${data.places[0] ?? "the folder skills of your settings"}.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}
    ${others.map((name) => html`<h2 key=${name}>New skill proposed: ${name}</h2><${Proposal} name=${name} done=${reload} />`)}
    <h2>New skill</h2><${NewSkill} done=${reload} />
    <div class="deeds"><${Button} act=${reload}>Reload</${Button}></div>`;
}

function NewSkill({ done }) {
  const [name, call] = useState("");
  const [description, describe] = useState("");
  const [state, put] = useState({ trouble: "", file: "" });
  const make = async (event) => {
    event.preventDefault();
    if (!name.trim() || !description.trim()) return put({ trouble: "Write a name, and when the model is to use it.", file: "" });
    try {
      const { file } = await ownerRequest("POST", "/skills", { name: name.trim(), description: description.trim() });
      put({ trouble: "", file });
      call("");
      describe("");
      done();
    } catch (failure) {
      put({ trouble: failure.message, file: "" });
    }
  };
  return html`<form class="box" onSubmit=${make} noValidate>
    <${Field} label="Name" help="Lower-case letters, digits and hyphens." trouble=${state.trouble}>${(given) => html`<input type="text" autocomplete="off" ...${given} maxlength="64" placeholder="meeting-notes" value=${name} onInput=${(event) => call(event.currentTarget.value)} />`}</${Field}>
    <${Field} label="What it is for, and when to use it" help="The model chooses by this text.">${(given) => html`<textarea rows="2" dir="auto" ...${given} maxlength="1000" placeholder="Write notes of a meeting. Use it when the user names one." value=${description} onInput=${(event) => describe(event.currentTarget.value)}></textarea>`}</${Field}>
    ${state.file ? html`<p role="status">The skill was created. Open it above to write its instructions. Its file is <code>${state.file}</code>.</p>` : null}
    <div class="deeds"><button class="accent" type="submit">Create skill</button></div></form>`;
}

/** @param {{folder: string}} given */
export function SkillDetail({ folder }) {
  const { data, trouble, reload } = useResource("/skills");
  const skill = data?.skills.find((one) => one.folder === folder);
  const isMissing = data && !skill;
  return html`<${Back} href=${addressOf("tools", "skills")}>All skills</${Back}>
    <${ScreenHead} title=${skill?.name ?? "Skill"} text=${skill?.description ?? ""} />
    ${trouble || isMissing ? html`<${Trouble} text=${isMissing ? "There is no such skill any more." : "The skill could not be read."} failure=${trouble} act=${reload} />` : null}
    ${skill ? html`<div><${Skill} key=${skill.status} skill=${skill} data=${data} reload=${reload} /></div>` : trouble || isMissing ? null : html`<${Loading} />`}`;
}

function Skill({ skill, data, reload }) {
  const path = `/skills/${encodeURIComponent(skill.name)}`;
  const [failure, fail] = useState(null);
  const [turn, again] = useState(0);
  const withdraw = () => ownerRequest("DELETE", `${path}/tools?${new URLSearchParams({ folder: skill.folder })}`).then(reload);
  return html`<${Facts} rows=${[
      ["State", html`<${SkillState} skill=${skill} />`],
      ["Problem", skill.error],
      ["Folder", html`<code>${skill.folder}</code>`],
      ["From", PLACES[skill.place]],
      ["Needs", skill.compatibility],
      ["Licence", skill.license],
      ["Its tools", skill.tools],
    ]} />
    ${failure ? html`<${Trouble} text="Nothing was changed." failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    ${data.versioned.includes(skill.name) ? html`<${Proposal} name=${skill.name} done=${reload} />` : null}
    ${skill.tools ? html`<h2>Its tools</h2><${Review} label="Review its tools" note="This starts the programs that the skill brings, in a sandbox without a network, to see their tools. Nothing is approved by looking." done=${reload}
        look=${() => ownerRequest("POST", `${path}/tools/review`, { folder: skill.folder })} approve=${(review_id) => ownerRequest("POST", `${path}/tools`, { folder: skill.folder, review_id })} />
        ${skill.tools === "approved" ? html`<div class="deeds"><${ConfirmButton} title="Withdraw the approval?" verb="Withdraw it" text="The tools of this skill are not offered any more. Its text is still used." act=${withdraw}>Withdraw the approval of its tools</${ConfirmButton}></div>` : null}` : null}
    ${skill.place === "settings" && ["ready", "broken", "incomplete"].includes(skill.status) ? html`<${Source} path=${path} done=${() => (again(turn + 1), reload())} />` : null}
    ${skill.status === "ready" ? html`<${Text} key=${turn} path=${path} />` : skill.status === "unapproved" ? html`<${Unapproved} skill=${skill} path=${path} done=${reload} />` : null}`;
}

/** SKILL.md of a skill of the owner's, to be edited. */
function Source({ path, done }) {
  const [isOpen, open] = useState(false);
  const { data, trouble, reload } = useResource(isOpen ? `${path}/source` : null);
  const [typed, type] = useState(null);
  const [failure, fail] = useState("");
  const save = async (event) => {
    event.preventDefault();
    try {
      await ownerRequest("PUT", `${path}/source`, { text: typed ?? data.text });
      open(false);
      type(null);
      fail("");
      done();
    } catch (problem) {
      fail(problem.message);
    }
  };
  if (!isOpen) return html`<div class="deeds"><button type="button" class="edged" onClick=${() => open(true)}>Edit</button></div>`;
  if (!data) return trouble ? html`<${Trouble} text="SKILL.md could not be read." failure=${trouble} act=${reload} />` : html`<${Loading} />`;
  return html`<form class="box" onSubmit=${save} noValidate>
    <${Field} label="SKILL.md" help="Between the lines of --- are its name and when it is used; its instructions follow." trouble=${failure}>${(given) => html`<textarea rows="16" dir="auto" spellcheck=${false} ...${given} value=${typed ?? data.text} onInput=${(event) => type(event.currentTarget.value)}></textarea>`}</${Field}>
    <div class="deeds"><button class="accent" type="submit">Save</button> <button type="button" class="edged" onClick=${() => (open(false), type(null), fail(""))}>Cancel</button></div></form>`;
}

function Text({ path }) {
  const { data, trouble, reload } = useResource(path);
  if (trouble) return html`<${Trouble} text="Its text could not be read." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  return html`<h2>Its text, as the model reads it</h2><${Code} label="Text of the skill" text=${data.text} />
    ${data.files.length ? html`<h2>Its files</h2><ul class="arguments">${data.files.map((file) => html`<li key=${file}><code>${file}</code></li>`)}</ul>` : null}`;
}

/** Everything that is approved is shown first; what has changed meanwhile is not approved. */
function Unapproved({ skill, path, done }) {
  const { data, trouble, reload } = useResource(`${path}/contents?${new URLSearchParams({ folder: skill.folder })}`);
  const [failure, fail] = useState(null);
  const approve = () => ownerRequest("POST", `${path}/approve`, { folder: skill.folder, digest: data.digest }).then(() => (fail(null), done()), fail);
  if (trouble) return html`<${Trouble} text="It could not be read." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  return html`<h2>What you would approve</h2><p class="lead">Others may have written this. The model follows it as if you had. After any change it must be approved again.</p>
    ${data.files.map((file) => html`<details key=${file.path} open=${file.path.endsWith(".md")}><summary><code>${file.path}</code> <small>${bytes(file.bytes)}</small></summary>${file.text == null ? html`<p class="empty">It is not text, or too long to show.</p>` : html`<${Code} label=${file.path} text=${file.text} />`}</details>`)}
    ${failure ? html`<${Trouble} text="It was not approved." failure=${failure} label="Read it again" act=${() => (fail(null), reload())} />` : null}
    <div class="deeds"><${Button} kind="accent" act=${approve}>Approve this skill</${Button}></div>`;
}

/** A change that a dream has proposed, and the versions that there were. */
function Proposal({ name, done }) {
  const path = `/skills/${encodeURIComponent(name)}`;
  const { data, trouble, reload } = useResource(`${path}/proposal`);
  if (trouble) return html`<${Trouble} text="Its versions could not be read." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  return html`<${Versions} data=${data} path=${path} name=${name} done=${() => (reload(), done())} />`;
}
