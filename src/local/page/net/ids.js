/** Fresh ids. `crypto.randomUUID` is not there on a page that is served over plain http to another machine. */

/** `letters` of 5 bits each after the prefix and a hyphen. @param {string} prefix @param {number} letters */
export function fresh(prefix, letters = 16) {
  const bytes = crypto.getRandomValues(new Uint8Array(letters));
  return `${prefix}-${Array.from(bytes, (byte) => "0123456789abcdefghjkmnpqrstvwxyz"[byte & 31]).join("")}`;
}
