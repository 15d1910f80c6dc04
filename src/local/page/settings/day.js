/** A day in this browser's words. */

/** @param {string | number} at a time in the form of ISO 8601, or milliseconds since 1970 */
export function dayOf(at) {
  const day = new Date(at);
  return Number.isNaN(day.getTime()) ? String(at) : day.toLocaleDateString(undefined, { day: "numeric", month: "long", year: "numeric" });
}
