/** What passes on the bus, subject by subject: how often, how large, how late, from whom, to whom. */

/** Counts of the messages that passed since it was made, by their subject. */
export class SubjectCounts {
  /** @param {number} now seconds since 1970, as all times here */
  constructor(now) {
    this.since = now;
    /** @type {Map<string, {count: number, bytes: number, delay: number, slowest: number, senders: Set<string>}>} */
    this.by = new Map();
  }

  /** @param {{subject: string, sender: string, size?: number, sent_at: number}} header @param {number} now when it came */
  add({ subject, sender, size = 0, sent_at: sentAt }, now) {
    let of = this.by.get(subject);
    if (!of) this.by.set(subject, (of = { count: 0, bytes: 0, delay: 0, slowest: 0, senders: new Set() }));
    const delay = Math.max(0, now - sentAt);
    of.count += 1;
    of.bytes += size;
    of.delay += delay;
    of.slowest = Math.max(of.slowest, delay);
    of.senders.add(sender);
  }

  /** One row for each subject, by name; `to` is who listens to it. @param {Iterable<any>} participants @param {number} now */
  rows(participants, now) {
    const all = [...participants];
    const seconds = Math.max(1, now - this.since);
    return [...this.by].sort(([one], [other]) => (one < other ? -1 : 1)).map(([subject, { count, bytes, delay, slowest, senders }]) => ({
      subject,
      count,
      rate: count / seconds,
      bytes: bytes / seconds,
      size: bytes / count,
      delay: delay / count,
      slowest,
      from: [...senders].sort(),
      to: all.filter((row) => Object.keys(row.subscriptions ?? {}).some((one) => covers(one, subject))).map((row) => row.name).sort(),
    }));
  }
}

/** Whether a subscription takes a subject in: the same one, a family ("tool.result."), or everything (""). */
function covers(subscription, subject) {
  return subscription === subject || subscription === "" || (subscription.endsWith(".") && subject.startsWith(subscription));
}
