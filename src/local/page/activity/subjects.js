/** The subjects on the bus since this part was opened: rates, sizes, delays, senders and receivers. */

import { html, useEffect, useMemo, useState } from "../html.js";
import { rateInWords } from "../core/bus.js";
import { SubjectCounts } from "../core/subjects.js";
import { bytes, duration, figure } from "../core/words.js";
import { Empty } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { watchBus } from "../state/following.js";
import { participants } from "../state/store.js";

const DRAW_MS = 1000;

const COLUMNS = [
  { id: "subject", title: "Subject", value: (row) => row.subject, show: (row) => html`<code>${row.subject}</code>` },
  { id: "count", title: "Messages", value: (row) => row.count, show: (row) => figure(row.count), isNumber: true },
  { id: "rate", title: "Rate", value: (row) => row.rate, show: (row) => rateInWords(row.rate), isNumber: true },
  { id: "bytes", title: "Payload", value: (row) => row.bytes, show: (row) => `${bytes(Math.round(row.bytes))}/s`, isNumber: true },
  { id: "size", title: "Size", value: (row) => row.size, show: (row) => bytes(Math.round(row.size)), isNumber: true },
  { id: "delay", title: "Delay", value: (row) => row.delay, show: (row) => html`<span title=${`at most ${duration(row.slowest)}`}>${duration(row.delay)}</span>`, isNumber: true },
  { id: "from", title: "From", value: (row) => row.from.join(", ") },
  { id: "to", title: "To", value: (row) => row.to.join(", "), show: (row) => row.to.join(", ") || html`<small>only who watches</small>` },
];

export function Subjects() {
  const counts = useMemo(() => new SubjectCounts(Date.now() / 1000), []);
  const [rows, draw] = useState([]);
  useEffect(() => {
    const end = watchBus((name, header) => name === "message" && counts.add(header, Date.now() / 1000));
    const timer = setInterval(() => draw(counts.rows(participants.peek().values(), Date.now() / 1000)), DRAW_MS);
    return () => (end(), clearInterval(timer));
  }, []);
  return html`<p class="help">Every subject on which something was sent since you opened this: how often and how much, the mean size and the mean delay from its sender to this page.</p>
    ${rows.length ? html`<div class="subjects"><${Table} label="Subjects" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.subject} /></div>` : html`<${Empty}>Nothing has passed yet. Participants report their state every few seconds.</${Empty}>`}`;
}
