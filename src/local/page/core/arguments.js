/** The arguments that a JSON Schema describes, for people. */

/** @param {any} schema @returns {{name: string, type: string, text: string, isRequired: boolean}[]} */
export function argumentsOf(schema) {
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  const properties = schema?.properties && typeof schema.properties === "object" ? schema.properties : {};
  return Object.entries(properties).map(([name, property]) => ({ name, type: typeOf(property), text: String(property?.description ?? ""), isRequired: required.has(name) }));
}

function typeOf(property) {
  if (!property || typeof property !== "object") return "";
  if (Array.isArray(property.enum)) return property.enum.map((value) => JSON.stringify(value)).join(" or ");
  const kinds = property.anyOf ?? property.oneOf;
  if (Array.isArray(kinds)) return kinds.map(typeOf).filter(Boolean).join(" or ");
  if (property.type === "array") return `list of ${typeOf(property.items) || "anything"}`;
  return Array.isArray(property.type) ? property.type.join(" or ") : String(property.type ?? "");
}

/** The words of a command as a shell would split it: quotes group, a backslash keeps the next character. Null for an
 * open quote. @param {string} line @returns {string[] | null} */
export function wordsOf(line) {
  const words = [];
  let word = null;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at];
    if (quote) {
      if (sign === quote) quote = "";
      else if (sign === "\\" && quote === '"' && '"\\'.includes(line[at + 1] ?? "")) word += line[(at += 1)];
      else word += sign;
    } else if (sign === "'" || sign === '"') [quote, word] = [sign, word ?? ""];
    else if (/\s/.test(sign)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (sign === "\\" && at + 1 < line.length) word = (word ?? "") + line[(at += 1)];
    else word = (word ?? "") + sign;
  }
  if (quote) return null;
  return word === null ? words : [...words, word];
}

/** Words as one line, which `wordsOf` splits into the same. @param {string[]} words */
export function lineOf(words) {
  return words.map((word) => (/^[\w@%+=:,./~${}-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'"'"'`)}'`)).join(" ");
}

/** `NAME=VALUE` lines as an object, or the first line that is none: `{pairs}` or `{trouble}`. @param {string} text */
export function pairsOf(text) {
  const pairs = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, name, value] = /^([^=\s]+)=(.*)$/.exec(line) ?? [];
    if (!name) return { trouble: `“${line}”: write NAME=VALUE` };
    pairs[name] = value;
  }
  return { pairs };
}
