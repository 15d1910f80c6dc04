/** Messages of the journal, the latest first, and those that come while it is shown; each opens in the inspector. */

import { html, useEffect, useMemo, useState } from "../html.js";
import { isPassing, isProblem, journalPath, together } from "../core/bus.js";
import { bytes, moment } from "../core/words.js";
import { request } from "../net/api.js";
import { watchBus } from "../state/following.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";
import { RowWindow } from "../views/row_window.js";
import { Button } from "./field.js";
import { Empty, Loading, Trouble } from "./notes.js";
import { sheet } from "./sheet.js";

await sheet("./messages.css", import.meta.url);

const MOST_LIVE = 500;

/** @param {{filter: string, until?: number | null, label: string, empty: string}} given
 * `until` is a time in seconds since 1970, null for now: then new messages are added as they come. */
export function Messages({ filter, until = null, label, empty }) {
  const [page, put] = useState({ entries: null, before: null, trouble: null });
  const [live, add] = useState([]);
  const load = (stop) =>
    request("GET", journalPath({ filter, until }), undefined, { signal: stop?.signal }).then(
      ({ entries, before }) => stop?.signal.aborted || put({ entries, before, trouble: null }),
      (trouble) => stop?.signal.aborted || put((had) => ({ ...had, trouble }))
    );
  useEffect(() => {
    const stop = new AbortController();
    put((had) => ({ ...had, trouble: null }));
    add([]);
    void load(stop);
    if (until !== null) return () => stop.abort();
    let coming = [];
    const { later, stop: stopShowing } = together(() => {
      const news = coming.reverse();
      coming = [];
      add((before) => [...news, ...before].slice(0, MOST_LIVE));
    });
    const end = watchBus((name, header) => {
      if (name !== "message" || isPassing(header)) return;
      coming.push({ ...header, seq: null });
      later();
    }, filter);
    return () => (stop.abort(), stopShowing(), end());
  }, [filter, until]);
  const earlier = () =>
    request("GET", journalPath({ filter, before: page.before })).then(
      ({ entries, before }) => put((had) => (had === page ? { entries: [...(page.entries ?? []), ...entries], before, trouble: null } : had)),
      (trouble) => put((had) => (had === page ? { ...page, trouble } : had)) // else other messages are wanted by now
    );
  const rows = useMemo(() => {
    const known = new Set((page.entries ?? []).map((one) => one.id)); // one that is sent again is on the bus twice
    return [...live.filter((one) => !known.has(one.id) && known.add(one.id)), ...(page.entries ?? [])];
  }, [live, page.entries]);
  return html`${page.trouble ? html`<${Trouble} text="The messages could not be read." failure=${page.trouble} act=${() => void load(null)} />` : null}
    ${page.entries ? (rows.length ? html`<${MessageRows} rows=${rows} label=${label} />` : html`<${Empty}>${page.before ? "None of the latest messages match." : empty}</${Empty}>`) : page.trouble ? null : html`<${Loading} />`}
    ${page.entries && page.before ? html`<p class="more-messages"><${Button} act=${earlier}>Earlier messages</${Button}></p>` : null}`;
}

/** A list of headers in a box of its own. @param {{rows: {length: number, slice: (first: number, last: number) => any[]}, label: string}} given */
export function MessageRows({ rows, label }) {
  return html`<div class="messages" data-scroll tabindex="0" role="region" aria-label=${label}><${RowWindow} rows=${rows} className="message-rows" label=${label} draw=${(one) => html`<${Row} key=${one.n ?? one.id ?? one.seq} header=${one} />`} /></div>`;
}

function Row({ header }) {
  const { subject, sender, summary, size, sent_at: at, redacted } = header;
  const time = clock(at);
  const bad = isProblem(header);
  const draw = () => html`<li data-subject=${subject} class=${bad ? "bad" : null}><button type="button" onClick=${() => void open(header)}>
    <time class="num">${time}</time><code>${bad ? "△ " : ""}${subject}</code><span class="by">${sender}</span><span class="about" dir="auto">${redacted ? "payload deleted" : (summary ?? "")}</span><span class="num size">${size == null ? "" : bytes(size)}</span></button></li>`;
  return useMemo(draw, [header, time]); // a row that has only moved is not drawn again
}

/** One that came live has its payload in the journal, if it is recorded. */
async function open(header) {
  let envelope = { ...header, n: undefined, seq: header.recorded ? header.seq : null };
  if (!header.recorded && header.correlation_id) {
    const path = `/journal?limit=500&query=${encodeURIComponent(header.correlation_id)}&subject=${encodeURIComponent(header.subject)}`;
    const { entries } = await request("GET", path).catch(() => ({ entries: [] }));
    envelope = entries.find((one) => one.id === header.id) ?? envelope;
  }
  inspect({ kind: "envelope", envelope }, "raw");
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

function clock(seconds) {
  const then = new Date(seconds * 1000);
  return then.toDateString() === new Date(now.value * 1000).toDateString() ? TIME.format(then) : moment(seconds, now.value);
}
