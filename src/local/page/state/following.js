/** What this tab follows, and what it makes of what comes. */

import { batch } from "../html.js";
import { SharedStream } from "../net/tabs.js";
import { proof } from "../net/token.js";
import { all, conversationOf, hear, isId, load } from "./conversation.js";
import { hearDeleted, hearSession, loadList } from "./listing.js";
import { announce } from "./announcer.js";
import { hearApproval, loadApprovals } from "./approvals.js";
import { deliver, onAccepted, outbox } from "./outbox.js";
import { hearPull } from "./system.js";
import { withParticipant } from "../core/system_words.js";
import { asked } from "../core/turn.js";
import { currentId, health, isOutdated, me, offlineSince, participants, remembered, sessions } from "./store.js";

/** @type {SharedStream | null} */
let stream = null;
/** The digest of the page's files, which is part of their addresses. */
const PAGE = new URL("../", import.meta.url).pathname.split("/").at(-2);
const waiting = [];
const HIDDEN_MS = 50;
const UNPAINTED_MS = 250; // then no frame comes: some windows that nobody can see are not hidden, but never painted
let frame = 0;
let timer = 0;

/** Begin to listen. */
export function listen() {
  stream = new SharedStream(take, (isConnected) => void connected(isConnected));
  stream.start();
  onAccepted(follow);
  follow();
}

/** Tell the stream what this tab shows and waits for. */
export function follow() {
  const open = [...all().flatMap((one) => one.open), ...judged()];
  const shown = all().filter((one) => isId(one.id) && (one.open.length || one.id === currentId.peek()));
  stream?.want({ sessions: shown.map((one) => one.id), queries: open.filter((id) => !outbox.peek().has(id)), bus: watching.size > 0 && [...new Set(watching.values())] });
}

/** @type {Map<(name: "message" | "lost", data: any) => void, string>} what listens, and the filter of its messages */
const watching = new Map();

/** Hear the headers of all messages on the bus that match a filter, and how many were lost, until the function that this returns is called. */
export function watchBus(hearOne, filter = "") {
  watching.set(hearOne, filter);
  follow();
  return () => {
    watching.delete(hearOne);
    follow();
  };
}

const hearBus = (name, data) => watching.forEach((filter, hearOne) => (name === "lost" || !filter || data.matches?.includes(filter)) && hearOne(name, data));

const ended = new Map(); // when each query that was followed has ended
const TRAIL_SECONDS = 130; // for how long its judgements are waited for

function judged() {
  for (const [id, at] of ended) if (Date.now() / 1000 - at > TRAIL_SECONDS) ended.delete(id);
  return ended.keys();
}

/** Events wait for the next frame, but not for long, and are shown together. */
export function take(name, data) {
  if (name === "message" && !watching.size) return; // another tab shows the bus
  waiting.push([name, data]);
  if (timer) return;
  timer = setTimeout(flush, document.hidden ? HIDDEN_MS : UNPAINTED_MS);
  frame = requestAnimationFrame(flush);
}

addEventListener("visibilitychange", () => document.hidden && waiting.length && flush());

function flush() {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  timer = 0;
  const events = waiting.splice(0);
  batch(() => {
    for (const [name, data] of events) HEARD[name]?.(data);
  });
}

/** What shows the words of goals, fetched when there are some. @type {Promise<any> | null} */
let goals = null;

/** @type {Record<string, (data: any) => void>} */
const HEARD = {
  hello(data) {
    if (data.page && PAGE !== "app" && data.page !== PAGE) isOutdated.value = true;
    me.value = { user_id: data.user_id, owner: data.owner };
    if (!data.resumed) void refresh();
  },
  query(data) {
    const change = hear(data);
    if (!change) return;
    announce(change.before, change.after);
    if (change.before.status === "open" && change.after.status === "answered") ended.set(data.query_id, Date.now() / 1000);
    if (change.before.status === "open" && change.after.status !== "open") follow();
  },
  asked(data) {
    const conversation = conversationOf(data.session_id);
    if (conversation.after.peek()) void load(conversation);
    else conversation.turn(data.query_id, () => asked(data.query_id, data.session_id, data.query));
    follow();
  },
  session: hearSession,
  session_deleted: (data) => hearDeleted(data.session_id),
  participant(data) {
    participants.value = withParticipant(participants.peek(), data);
    if (data.name === "reflection" && (goals || data.counters?.goals_unseen)) {
      goals ??= import("./goals.js");
      void goals.then((file) => file.hearGoals(data.counters));
    }
  },
  memory: () => (remembered.value += 1),
  approval: hearApproval,
  pull: hearPull,
  message: (data) => hearBus("message", data),
  lost: (data) => data.what === "bus" && hearBus("lost", data),
};

/** After an interruption that could not be made good event by event: look at the record. */
async function refresh() {
  await Promise.all([loadList(), lookAtHealth(), loadApprovals(), ...all().filter((one) => one.state.peek() !== "new" && sessions.peek().has(one.id)).map((one) => load(one))]);
  follow();
}

const LONGEST_PAUSE_SECONDS = 30;
let nextLook = 0;

/** How the system is, well or not; looked at again while an API that has just been started does not know all of it. */
async function lookAtHealth(pauseSeconds = 1) {
  clearTimeout(nextLook);
  try {
    const response = await fetch("/health?report=true", { headers: proof(), cache: "no-store" });
    health.value = await response.json();
  } catch {
    return; // the stream tells that nobody answers
  }
  if (health.peek().status === "starting" || health.peek().model === null)
    nextLook = setTimeout(lookAtHealth, pauseSeconds * 1000, Math.min(2 * pauseSeconds, LONGEST_PAUSE_SECONDS));
}

async function connected(isConnected) {
  if (!isConnected) {
    offlineSince.value ??= Date.now() / 1000;
    return;
  }
  if (offlineSince.peek() !== null) for (const id of outbox.peek().keys()) void deliver(id);
  offlineSince.value = null;
}
