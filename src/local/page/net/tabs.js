/**
 * The tabs of one browser share one stream: the tab that holds the lock runs it and passes on what comes. Where a
 * browser has no locks, as on a page over plain http, each tab runs its own.
 */

import { Stream } from "./stream.js";
import { after, asked } from "../core/turn.js";
import { fresh } from "./ids.js";

const LOCK = "local2.stream";
const CHANNEL = "local2.stream";
const KEPT = 64; // number of recent queries whose events are replayed to a tab that begins to follow them

/** Runs or follows the stream. `heard(name, data)` gets what this tab has asked for, and `changed` how it is. */
export class SharedStream {
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    this.tab = fresh("tab", 10);
    /** @type {{sessions: string[], queries: string[], bus: string[] | false}} */
    this.wanted = { sessions: [], queries: [], bus: false };
    this.ofTabs = new Map();
    this.known = new Map(); // how the stream began and who takes part, for tabs that come later
    this.said = new Map(); // what was said of the latest queries, the last one heard of at the end
    this.channel = null;
    this.stream = null;
  }

  start() {
    if (!navigator.locks || typeof BroadcastChannel === "undefined") {
      this.lead();
      return;
    }
    this.channel = new BroadcastChannel(CHANNEL);
    this.channel.onmessage = ({ data }) => this.take(data);
    addEventListener("pagehide", () => this.say({ kind: "bye", tab: this.tab }));
    void navigator.locks.request(LOCK, { mode: "exclusive" }, () => new Promise(() => this.lead()));
    this.say({ kind: "want", tab: this.tab, wanted: this.wanted });
  }

  /** What this tab shows; of the bus the filters whose matches are to be named. @param {{sessions: string[], queries: string[], bus: string[] | false}} wanted */
  want(wanted) {
    const before = this.wanted;
    this.wanted = wanted;
    if (!this.stream) return this.say({ kind: "want", tab: this.tab, wanted });
    this.carry();
    for (const told of this.missed(before, wanted)) this.heard("query", told);
  }

  lead() {
    this.stream = new Stream(
      (name, data) => {
        this.keep(name, data);
        this.heard(name, data);
        if (name !== "message" || this.isBusWantedElsewhere()) this.say({ kind: "event", name, data });
      },
      (isConnected) => {
        this.isConnected = isConnected;
        this.changed(isConnected);
        this.say({ kind: "connected", isConnected });
      }
    );
    this.carry();
    void this.stream.run();
    this.say({ kind: "who" });
  }

  take(message) {
    if (message.to && message.to !== this.tab) return;
    if (message.kind === "event" && !this.stream) this.heard(message.name, message.data);
    if (message.kind === "connected" && !this.stream) this.changed(message.isConnected);
    if (message.kind === "who") this.say({ kind: "want", tab: this.tab, wanted: this.wanted });
    if (this.stream && message.kind === "want") this.join(message.tab, message.wanted);
    if (this.stream && message.kind === "bye" && this.ofTabs.delete(message.tab)) this.carry();
  }

  join(tab, wanted) {
    const before = this.ofTabs.get(tab);
    this.ofTabs.set(tab, wanted);
    this.carry();
    if (!before) this.say({ kind: "connected", to: tab, isConnected: this.isConnected ?? true });
    if (!before) for (const [name, data] of this.known.values()) this.say({ kind: "event", to: tab, name, data: name === "hello" ? { ...data, resumed: false } : data });
    for (const told of this.missed(before, wanted)) this.say({ kind: "event", to: tab, name: "query", data: told });
  }

  /** What was said of the queries that a tab wants now and did not before. The stream may carry them already, and then
   * says nothing of it again: not even that one has ended after the tab had read the record. */
  missed(before, wanted) {
    const added = wanted.queries.filter((id) => !before?.queries.includes(id));
    return added.flatMap((id) => (this.said.has(id) ? [snapshotOf(this.said.get(id))] : []));
  }

  keep(name, told) {
    if (name === "hello" || name === "participant") this.known.set(`${name} ${told.name}`, [name, told]);
    if (name !== "query") return;
    const { query_id: id, session_id: sessionId, event, data } = told;
    const said = after(this.said.get(id) ?? asked(id, sessionId, ""), event, data);
    this.said.delete(id);
    this.said.set(id, said);
    if (this.said.size > KEPT) this.said.delete(this.said.keys().next().value);
  }

  carry() {
    const all = [this.wanted, ...this.ofTabs.values()];
    const union = (name, most) => [...new Set(all.flatMap((one) => one[name]))].slice(0, most);
    const filters = [...new Set(all.flatMap((one) => one.bus || []))].filter(Boolean).slice(0, 16);
    const bus = this.wanted.bus || this.isBusWantedElsewhere() ? { subjects: [""], payload: "none", filters } : null;
    void this.stream.carry({ sessions: union("sessions", 64), queries: union("queries", 256), bus });
  }

  isBusWantedElsewhere() {
    return [...this.ofTabs.values()].some((one) => one.bus);
  }

  say(message) {
    this.channel?.postMessage(message);
  }
}

/** Everything that was said of a query, as one event. */
function snapshotOf({ query, attachments, ...known }) {
  return { query_id: known.query_id, session_id: known.session_id, event: known.status === "open" ? "snapshot" : "response", data: known };
}
