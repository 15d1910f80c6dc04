/** The one stream of a browser: it reconnects automatically and resumes. */

import { request } from "./api.js";
import { fresh } from "./ids.js";
import { readEvents } from "./server_events.js";
import { proof, refused, signIn } from "./token.js";

const SILENCE_SECONDS = 40; // the server says something every 15 s
const PAUSES = [0, 0.15, 0.3, 0.6, 1]; // seconds before the next attempt

/** Carries the wanted subjects and passes each event to `heard(name, data)`; `changed(isConnected)` reports its state. */
export class Stream {
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    this.id = fresh("t", 20);
    /** @type {Record<string, any>} */
    this.carried = { sessions: [], queries: [], list: true, participants: signIn.peek()?.owner ?? true }; // users may not know who takes part
    this.lastId = "";
    this.failures = 0;
    this.isOpen = true;
    this.posting = Promise.resolve();
  }

  /** Connect, and stay connected until `close`. */
  async run() {
    this.watchReturn();
    while (this.isOpen) {
      await this.connect().catch(() => {});
      if (!this.isOpen) return;
      this.failures += 1;
      if (this.failures > 1) this.changed(false);
      await this.pause(PAUSES[Math.min(this.failures - 1, PAUSES.length - 1)]);
    }
  }

  close() {
    this.isOpen = false;
    this.attempt?.abort();
    this.wake?.();
  }

  /** Say what it shall carry from now on. */
  carry(wanted) {
    this.carried = { ...this.carried, ...wanted };
    this.posting = this.posting.then(() => this.tell()).catch(() => this.attempt?.abort());
    return this.posting;
  }

  async connect() {
    const attempt = (this.attempt = new AbortController());
    const shown = proof();
    await this.tell(attempt.signal).catch((failure) => {
      if (failure.status === 401) refused(shown["x-local2-key"]);
      throw failure;
    });
    const response = await fetch(`/stream?id=${this.id}`, {
      signal: attempt.signal,
      cache: "no-store",
      headers: { accept: "text/event-stream", ...shown, ...(this.lastId ? { "last-event-id": this.lastId } : {}) },
    });
    if (response.status === 401) refused(shown["x-local2-key"]);
    if (!response.ok) throw new Error(`status ${response.status}`);
    this.listen(attempt);
    await readEvents(response, (event) => this.take(event), () => this.listen(attempt));
  }

  take(event) {
    if (event.id) this.lastId = event.id;
    const data = JSON.parse(event.data);
    if (event.name === "hello") {
      this.failures = 0;
      this.changed(true);
    }
    this.heard(event.name, data);
  }

  tell(signal) {
    return request("POST", `/stream/${this.id}`, this.carried, { signal });
  }

  /** A stream on which nothing comes any more is dead, whatever the operating system says. */
  listen(attempt) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => attempt.abort(), SILENCE_SECONDS * 1000);
  }

  pause(seconds) {
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, seconds * 1000);
    });
  }

  watchReturn() {
    const again = () => document.visibilityState === "visible" && this.wake?.();
    addEventListener("online", again);
    document.addEventListener("visibilitychange", again);
  }
}
