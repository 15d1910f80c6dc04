/** What the models may call, what was approved, and where tools and skills come from. */

import { html } from "../html.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Tabs } from "../parts/tabs.js";
import { Approvals } from "./approvals.js";
import { Folders } from "./folders.js";
import { HookList } from "./hooks.js";
import { ChangedServer, NewServer, ServerDetail, Servers } from "./mcp.js";
import { ProfileDetail, ProfileForm, Profiles } from "./profiles.js";
import { SkillDetail, Skills } from "./skills.js";
import { ToolList } from "./tools.js";

const TABS = [
  { id: "tools", title: "Tools", text: "What models can call. L0 only reads; the other levels ask first, as the mode says.", Part: ToolList },
  { id: "approvals", title: "Approvals", text: "Calls that wait for you, and what you have allowed for whole conversations.", Part: Approvals },
  { id: "skills", title: "Skills", text: "Instructions that the model reads when a task needs them.", Part: Skills },
  { id: "profiles", title: "Profiles", text: "Kinds of assistants that a conversation can be answered by: each a text, and the tools that it may use.", Part: Profiles },
  { id: "mcp", title: "MCP servers", text: "Programs and services that bring tools of their own.", Part: Servers },
  { id: "hooks", title: "Hooks", text: "Programs of yours that are asked before and after what a turn does. They can forbid, never approve.", Part: HookList },
  { id: "folders", title: "Folders", text: "Folders that you trust: their files count as yours, and they may instruct the assistant.", Part: Folders },
];

/** @param {{path: string[]}} given */
export function Screen({ path: [part = "tools", id = "", more = ""] }) {
  if (part === "skills" && id) return html`<${SkillDetail} key=${id} folder=${id} />`;
  if (part === "profiles" && id) return html`<${ProfileDetail} key=${`${id} ${more}`} name=${id} isChanged=${more === "change"} />`;
  if (part === "new-profile") return html`<${ProfileForm} />`;
  if (part === "mcp" && more === "change") return html`<${ChangedServer} key=${`${id} ${more}`} name=${id} />`;
  if (part === "mcp" && id) return html`<${ServerDetail} key=${id} name=${id} />`;
  if (part === "connect") return html`<${NewServer} />`;
  const { id: at, text, Part } = TABS.find((tab) => tab.id === part) ?? TABS[0];
  return html`<${ScreenHead} title="Tools" text=${text} />
    <${Tabs} screen="tools" at=${at} tabs=${TABS} />
    <div><${Part} key=${at} /></div>`;
}
