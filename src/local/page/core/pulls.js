/** Models that are being fetched: a fold of `pull` events by the model's name. */

import { bytes } from "./words.js";

/** @typedef {{name: string, state: "running"|"done"|"stopped"|"failed", status: string, completed?: number|null, total?: number|null, error?: any}} Pull */

/** @param {Map<string, Pull>} pulls @param {Pull} event */
export function withPull(pulls, event) {
  if (!event?.name) return pulls;
  return new Map(pulls).set(event.name, { ...pulls.get(event.name), ...event });
}

/** How far, 0 to 1, or null where it is not known. @param {Pull} pull */
export function progress(pull) {
  if (pull.state === "done") return 1;
  return pull.total ? Math.min(1, (pull.completed ?? 0) / pull.total) : null;
}

export function isOver(pull) {
  return pull.state !== "running";
}

/** "2.1 GB of 7.6 GB", or what is being done. */
export function extent(pull) {
  if (pull.state === "failed") return pull.error?.message ?? "The download failed.";
  if (pull.state === "done") return "Downloaded.";
  if (pull.state === "stopped") return "Stopped. Try again to resume the download.";
  return pull.total ? `${bytes(pull.completed ?? 0)} of ${bytes(pull.total)}` : pull.status;
}

/** Models that can be proposed to somebody who has none. */
export const PROPOSED = Object.freeze([
  { name: "gemma4:12b", note: "calls tools well; about 8 GB of memory", isBest: true },
  { name: "gemma4:e4b", note: "smaller; calls tools less reliably" },
  { name: "gemma4:26b", note: "larger, for a strong machine" },
]);
