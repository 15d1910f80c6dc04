/** The bus as its screen shows it: the latest headers, rates, seats of the participants, and what waits for them. */

export const MOST = 20_000;
const SPARE = 2_000; // dropped at once, so that a full ring costs nothing for each message
const SECONDS = 10; // over which a rate is the mean

/** The last `MOST` headers that match, with the number of all that came and of those that were lost. */
export class Ring {
  constructor(most = MOST, spare = SPARE) {
    this.most = most;
    this.spare = spare;
    /** @type {any[]} */
    this.rows = [];
    this.count = 0;
    this.lost = 0;
  }

  /** Number it, and keep it. */
  push(header) {
    this.count += 1;
    this.rows.push({ ...header, n: this.count });
    if (this.rows.length >= this.most + this.spare) this.rows.splice(0, this.rows.length - this.most);
  }

  /** Put entries of the journal, the latest first, before what has come; what is on record and has come is there once. */
  precede(entries) {
    const known = new Set(this.rows.map((row) => row.id));
    this.rows.unshift(...entries.filter((entry) => !known.has(entry.id)).reverse());
  }

  /** The latest first, as a list of rows takes them: no copy of all is made. @param {any[]} rows */
  static latest(rows, most = MOST) {
    const length = Math.min(rows.length, most);
    const at = (index) => rows[rows.length - 1 - index];
    return { length, slice: (first, last) => Array.from({ length: Math.max(0, Math.min(last, length) - first) }, (_, index) => at(first + index)) };
  }
}

/** Messages a second by their sender, and of all. */
export class Rates {
  constructor() {
    /** @type {Map<number, Map<string, number>>} by second */
    this.seconds = new Map();
  }

  count(sender, now, number = 1) {
    const second = Math.floor(now);
    let of = this.seconds.get(second);
    if (!of) {
      this.seconds.set(second, (of = new Map()));
      for (const old of this.seconds.keys()) if (old < second - SECONDS) this.seconds.delete(old);
    }
    of.set(sender, (of.get(sender) ?? 0) + number);
  }

  /** Of the last whole seconds. @returns {{all: number, by: Map<string, number>}} */
  at(now) {
    const by = new Map();
    let all = 0;
    for (const [second, of] of this.seconds) {
      if (second < Math.floor(now) - SECONDS || second >= Math.floor(now)) continue;
      for (const [sender, count] of of) {
        by.set(sender, (by.get(sender) ?? 0) + count);
        all += count;
      }
    }
    return { all: all / SECONDS, by: new Map([...by].map(([sender, count]) => [sender, count / SECONDS])) };
  }
}

/** The rates of the seconds before a moment of the past, by what is on record of them: at most 500 messages. */
export function ratesBefore(until, entries) {
  const rates = new Rates();
  for (const { sender, sent_at: at } of entries) rates.count(sender, at);
  return rates.at(until);
}

/** 0 → "", 0.04 → "<0.1/s", 12.4 → "12/s". */
export function rateInWords(rate) {
  if (!rate) return "";
  return rate < 0.1 ? "<0.1/s" : `${rate < 9.95 ? rate.toFixed(1) : Math.round(rate)}/s`;
}

const SHOW_MS = 250; // nobody reads faster, and to draw a list costs more than all that came in between

/** Call `later` for each thing that comes: `show` follows at once after a pause, else for all of them together, four times
 * a second. @param {() => void} show */
export function together(show) {
  let timer = 0;
  let shownAt = 0;
  const run = () => {
    timer = 0;
    shownAt = Date.now();
    show();
  };
  const later = () => void (timer ||= setTimeout(run, Math.min(SHOW_MS, Math.max(0, shownAt + SHOW_MS - Date.now()))));
  return { later, stop: () => clearTimeout(timer) };
}

const GROUPS = [["frontend", "Frontends"], ["agent", "Agents"], ["observer", "Observers"], ["service", "Services"], ["tool", "Tools"]];

/** The participants by their kind, each kind and each name always in the same order. @param {Iterable<any>} rows */
export function groupsOf(rows) {
  const all = [...rows].sort((one, other) => (one.name < other.name ? -1 : 1));
  const known = new Set(GROUPS.map(([kind]) => kind));
  const inGroup = (kind) => all.filter((row) => (kind === "service" ? !known.has(row.kind) || row.kind === kind : row.kind === kind));
  return GROUPS.map(([kind, title]) => ({ title, rows: inGroup(kind) })).filter((group) => group.rows.length);
}

export const SEAT = { width: 148, height: 40, gap: 12, left: 18, head: 26 };

/** Where everybody sits in a picture of that width; it depends on who is there and on nothing else. */
export function seatsOf(groups, width) {
  const columns = Math.max(1, Math.floor((width - SEAT.left) / (SEAT.width + SEAT.gap)));
  let y = 0;
  const placed = groups.map(({ title, rows }) => {
    const top = y;
    y += SEAT.head;
    const seats = rows.map((row, index) => ({ row, x: SEAT.left + (index % columns) * (SEAT.width + SEAT.gap), y: y + Math.floor(index / columns) * (SEAT.height + SEAT.gap) }));
    y += Math.ceil(rows.length / columns) * (SEAT.height + SEAT.gap) + 2;
    return { title, y: top + 17, seats };
  });
  return { groups: placed, height: y, width: Math.min(width, SEAT.left + columns * (SEAT.width + SEAT.gap)) };
}

/** How many recorded messages wait for each participant, by the journal's counters of consumers. @returns {Map<string, number>} */
export function lags(rows) {
  const all = [...rows];
  const pending = all.find((row) => row.name === "journal")?.counters ?? {};
  return new Map(all.map((row) => [row.name, [...new Set(Object.values(row.subscriptions ?? {}))].reduce((sum, consumer) => sum + (consumer ? (pending[`pending_${consumer}`] ?? 0) : 0), 0)]));
}

/** Whether a message only serves the moment and is in no record: then the lists of what is on record leave it out. */
export function isPassing({ subject }) {
  return /^(journal\.|lease\.|generation\.|conversation\.|participant\.status$|bus\.probe)/.test(subject);
}

/** Whether it says that something went wrong. */
export function isProblem(header) {
  return header.subject === "bus.gap" || header.subject === "bus.dead" || header.subject === "query.failed" || header.subject === "bus.rejected";
}

/** The address that lists what matches. @param {{filter?: string, until?: number | null, before?: number | null, limit?: number | null}} wanted
 * @param {string} path of the route; a limit of null is none */
export function journalPath({ filter = "", until = null, before = null, limit = 100 }, path = "/journal") {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ limit, filter, until, before })) if (value !== null && value !== "") query.set(name, String(value));
  return `${path}?${query}`;
}
