/** A day in this browser's words. */

/** @param {string} at a time in the form of ISO 8601 */
export function dayOf(at) {
  const day = new Date(at);
  return Number.isNaN(day.getTime()) ? at : day.toLocaleDateString(undefined, { day: "numeric", month: "long", year: "numeric" });
}
