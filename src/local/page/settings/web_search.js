/** Web search in one go: which engine, its key, and whether it answers. */

import { html, useEffect, useRef, useState } from "../html.js";
import { Field } from "../parts/field.js";
import { ownerRequest } from "../state/system.js";
import { renew } from "./waiting.js";

const ENGINES = {
  auto: { title: "Choose one", about: "None is chosen yet. SearXNG is asked in case it is running." },
  searxng: { title: "SearXNG, on this machine", about: "No key and no company: it asks other engines for you. It has to be running.", at: "searxng_url" },
  brave: { title: "Brave", about: "Needs a key from brave.com/search/api. What you search for goes to Brave.", key: "brave_api_key" },
  tavily: { title: "Tavily", about: "Needs a key from tavily.com. What you search for goes to Tavily.", key: "tavily_api_key" },
  ddgs: { title: "DuckDuckGo and others, without a key", about: "Needs the package ddgs. It is refused more often than the others." },
};

/** @param {{fields: any[], secrets: any[] | null, changed: (shown: any) => void}} given */
export function WebSearch({ fields, secrets, changed }) {
  const of = (name) => fields.find((field) => field.name === name);
  const now = of("provider")?.value ?? "auto";
  const [engine, choose] = useState(now);
  const [key, type] = useState("");
  const [address, setAddress] = useState(of("searxng_url")?.value ?? "");
  const [query, ask] = useState("weather in Oslo");
  const [state, put] = useState({ step: "", trouble: "", found: /** @type {any} */ (null) });
  const chosen = ENGINES[engine] ?? { title: engine, about: "" };
  const field = chosen.key ? of(chosen.key) : null;
  const hasKey = field?.source?.from === "variable" || Boolean(field?.value && secrets?.some((one) => `secret:${one.name}` === field.value && one.set_at));
  const moved = chosen.at && address.trim() !== of(chosen.at)?.value ? { [chosen.at]: address.trim() } : {};
  const isNew = engine !== now || Boolean(key.trim() || moved[chosen.at]);
  const isReady = engine !== "auto" && Boolean(query.trim()) && !(field && !hasKey && !key.trim());
  const run = async (event) => {
    event.preventDefault();
    if (!isReady || state.step) return;
    let saved = null;
    try {
      if (isNew) {
        put({ step: "Saving …", trouble: "", found: null });
        if (field && key.trim()) await ownerRequest("PUT", `/secrets/${engine}`, { value: key.trim() });
        const values = { provider: engine, ...moved, ...(field && key.trim() ? { [field.name]: `secret:${engine}` } : {}) };
        saved = await ownerRequest("PUT", "/settings/web_search", { values });
        put({ step: "Restarting web search …", trouble: "", found: null });
        await renew("web_search");
      }
      put({ step: "Searching …", trouble: "", found: null });
      const found = await ownerRequest("POST", "/web/search", { query });
      latest = { step: "", trouble: "", found };
    } catch (failure) {
      latest = { step: "", trouble: failure.message, found: null };
    }
    put(latest);
    type("");
    if (saved) changed({ ...saved, restart_needed: [] });
  };
  const shown = state.step || state.found || state.trouble ? state : latest;
  const outcome = useRef(null);
  useEffect(() => void (shown.found && outcome.current?.scrollIntoView({ block: "nearest" })), [shown.found]);
  return html`<form class="set-up" aria-label="Set up web search" onSubmit=${run} noValidate>
    <${Field} label="Search engine" help=${chosen.about}>${(given) => html`<select ...${given} onChange=${(event) => (choose(event.target.value), (latest = NOTHING), put(NOTHING))}>${Object.entries({ ...ENGINES, ...(ENGINES[now] ? {} : { [now]: { title: now } }) }).map(([id, { title }]) => html`<option key=${id} value=${id} selected=${id === engine}>${title}</option>`)}</select>`}</${Field}>
    ${field ? html`<${Field} label=${`Key for ${chosen.title}`} help=${hasKey ? "A key is stored. Enter one here only to replace it." : "It is encrypted in the data directory, and this page never sees it again."}>${(given) => html`<input type="password" autocomplete="off" spellcheck="false" ...${given} value=${key} onInput=${(event) => type(event.target.value)} />`}</${Field}>` : null}
    ${chosen.at ? html`<${Field} label="Address of SearXNG">${(given) => html`<input type="text" inputmode="url" autocomplete="off" spellcheck="false" ...${given} value=${address} onInput=${(event) => setAddress(event.target.value)} />`}</${Field}>` : null}
    <${Field} label="A search to try">${(given) => html`<input type="text" dir="auto" maxlength="400" ...${given} value=${query} onInput=${(event) => ask(event.target.value)} />`}</${Field}>
    <div class="row-acts"><button type="submit" class="accent" aria-busy=${Boolean(state.step) || null} disabled=${!isReady}>${isNew ? "Save and try a search" : "Try a search"}</button></div>
    <div role="status" ref=${outcome}>${shown.step ? html`<p class="help">${shown.step}</p>` : null}
      ${shown.found ? html`<p><b>It works.</b> ${shown.found.sources.length} results from ${shown.found.provider}.</p><ol class="results">${shown.found.sources.map((url) => html`<li key=${url} dir="ltr">${url}</li>`)}</ol>` : null}</div>
    ${shown.trouble ? html`<p class="trouble" role="alert">The search did not work: ${shown.trouble}</p>` : null}
  </form>`;
}

const NOTHING = { step: "", trouble: "", found: null };
let latest = NOTHING; // which outlives the form that is made anew when settings were saved
