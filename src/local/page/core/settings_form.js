/**
 * Settings as a form: fields from a JSON Schema, and values from what was typed. What has no field of its own is typed
 * as JSON, so that every setting can be changed. `texts` are the paragraphs of its comment, `source` is where the value
 * comes from unless it is the default.
 * @typedef {{name: string, title: string, texts: string[], kind: "switch"|"number"|"choice"|"text"|"lines"|"secret"|"json",
 *   options: any[], least: number|null, above: number|null, most: number|null, isWhole: boolean, isNullable: boolean,
 *   isSecret: boolean, isLong: boolean, value: any, standard: any, isChanged: boolean,
 *   source: {from: "file"|"variable"|"system", name: string} | null}} Field
 */

/** @param {{schema: any, values?: any, defaults?: any, keys?: any, sources?: any}} settings @returns {Field[]} */
export function fieldsOf({ schema, values: given, defaults: beneath, keys = {}, sources = {} }) {
  const [values, defaults] = [given ?? {}, beneath ?? {}];
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const type = resolved(property, schema);
    const value = Object.hasOwn(values, name) ? values[name] : (defaults[name] ?? type.default ?? null);
    const standard = Object.hasOwn(defaults, name) ? defaults[name] : (type.default ?? null);
    return {
      name,
      title: titleOf(name),
      texts: keys[name]?.length ? keys[name] : [property.description ?? type.description ?? ""].filter(Boolean),
      kind: kindOf(type, value, standard),
      options: type.enum ?? [],
      least: type.minimum ?? null,
      above: type.exclusiveMinimum ?? null,
      most: type.maximum ?? type.exclusiveMaximum ?? null,
      isWhole: type.type === "integer",
      isNullable: type.isNullable,
      isSecret: /(^|_)(key|token|secret|password)$/.test(name) || type.format === "password" || type.writeOnly === true,
      isLong: /_prompt$|instructions$/.test(name) || `${value ?? ""}${standard ?? ""}`.includes("\n"),
      value,
      standard,
      isChanged: !isSame(value, standard),
      source: sources[name] ?? null,
    };
  });
}

/** A key, or a file of settings, in words. */
export const titleOf = (name) => (name === "api" ? "API" : name.replaceAll("_", " "));

/** What a file of settings is about, where its name does not say it to everybody. @type {Record<string, string>} */
export const ABOUT = {
  api: "this page, HTTP, budgets", arbiter: "whose turn it is at a model", critic: "grades", cron: "schedules", files: "your folder", gatekeeper: "permissions",
  generator: "answers and prompts", journal: "the record", models: "servers and prices", reflection: "goals and dreams", reward: "ratings", shell: "commands", swarm: "agents", system: "what takes part",
};

/** What a field takes, in words; "" where anything goes. @param {Field} field */
export function range(field) {
  if (field.kind === "lines") return "one on each line";
  if (field.kind === "json") return "written as JSON";
  if (field.kind !== "number") return "";
  const { least, above, most } = field;
  const words = least !== null && most !== null ? `${least} to ${most}` : least !== null ? `at least ${least}` : above !== null ? `more than ${above}` : most !== null ? `at most ${most}` : "";
  return field.isWhole && !words ? "a whole number" : words;
}

/** The sections and keys in which each of the words occurs: `{section, name, title, text}`, those in a name first.
 * @param {{name: string, about: string[], keys: Record<string, string[]>}[]} listing @param {string} typed */
export function foundSettings(listing, typed, most = 60) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = [];
  for (const { name: section, keys } of listing) {
    for (const [name, texts] of Object.entries(keys)) {
      const title = `${titleOf(section)} ${titleOf(name)} ${section} ${name}`.toLowerCase();
      const all = `${title} ${texts.join(" ").toLowerCase()}`;
      if (words.every((word) => all.includes(word))) found.push({ section, name, title: titleOf(name), text: firstSentence(texts[0] ?? ""), isNamed: words.every((word) => title.includes(word)) });
    }
  }
  return found.sort((one, other) => Number(other.isNamed) - Number(one.isNamed)).slice(0, most);
}

/** A text as far as its first full stop that a new sentence follows. */
export function firstSentence(text) {
  const end = /[.:](?=\s+[A-Z`'"]|$)/.exec(text);
  return end ? text.slice(0, end.index + 1) : text;
}

/** What a mapping has that the default has not; null where it leaves something of the default out, which no file can.
 * @returns {any} */
export function above(value, standard) {
  if (!isMapping(value) || !isMapping(standard)) return value;
  if (Object.keys(standard).some((key) => !Object.hasOwn(value, key))) return null;
  const found = {};
  for (const [key, each] of Object.entries(value)) {
    if (!Object.hasOwn(standard, key)) found[key] = each;
    else if (!isSame(each, standard[key])) found[key] = above(each, standard[key]);
    if (found[key] === null && each !== null) return null;
  }
  return found;
}

const isMapping = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What a request to change them is to have: `{values, reset}`, or `{trouble, key}`. A mapping is replaced as a whole.
 * @param {Field[]} fields @param {Record<string, any>} answers the values by key */
export function changesOf(fields, answers) {
  const values = {};
  const reset = [];
  for (const [key, value] of Object.entries(answers)) {
    const field = fields.find((one) => one.name === key);
    if (!isMapping(value)) {
      values[key] = value;
      continue;
    }
    const more = above(value, field?.standard);
    if (more === null) return { key, trouble: "What the default has cannot be taken out, only changed; see the default." };
    reset.push(key);
    if (Object.keys(more).length || !isMapping(field?.standard)) values[key] = more;
  }
  return { values, reset };
}

/** An error without the place in the file, which the field beside it shows. */
export const withoutPlace = (message) => message.replace(/^\S*\.yaml(:\d+)?: /, "");

/** A property without references and without "or null". */
function resolved(property, schema) {
  const name = /^#\/\$defs\/(.+)$/.exec(property.$ref ?? property.allOf?.[0]?.$ref ?? "")?.[1];
  if (name && schema.$defs?.[name]) return { ...resolved(schema.$defs[name], { ...schema, $defs: without(schema.$defs, name) }), default: property.default };
  const kinds = property.anyOf?.filter((one) => one.type !== "null");
  if (kinds?.length === 1) return { ...property, ...resolved(kinds[0], schema), isNullable: kinds.length < property.anyOf.length };
  const named = (kinds ?? []).map((one) => resolved(one, schema)).map((one) => one.enum ?? (one.const === undefined ? null : [one.const]));
  if (named.length && named.every(Boolean)) return { ...property, enum: named.flat(), isNullable: named.length < property.anyOf.length };
  return { isNullable: false, ...property };
}

function without(definitions, name) {
  return Object.fromEntries(Object.entries(definitions).filter(([one]) => one !== name)); // one that names itself ends
}

function kindOf(type, value, standard) {
  if (type.enum) return type.isNullable ? "text" : "choice";
  if (type.format === "password") return "secret";
  if (type.type === "array" && type.items?.type === "string" && !type.isNullable && ![...(value ?? []), ...(standard ?? [])].some((one) => String(one).includes("\n"))) return "lines";
  return { boolean: "switch", integer: "number", number: "number", string: "text" }[type.type] ?? "json";
}

/** What a field shows for a value. */
export function shown(field, value) {
  if (value == null) return "";
  if (field.kind === "lines") return value.join("\n");
  return field.kind === "json" ? JSON.stringify(value, null, 1) : String(value);
}

/** The value that was typed, or what is wrong with it: `{value}` or `{trouble}`. @param {Field} field */
export function parsed(field, typed) {
  if (field.kind === "switch") return { value: Boolean(typed) };
  if (field.isNullable && typed === "") return { value: null };
  if (field.kind === "number") return numbered(field, String(typed).trim());
  if (field.kind === "choice") return chosen(field, typed);
  if (field.kind === "text") return { value: typed };
  if (field.kind === "lines") return { value: typed.split("\n").map((line) => line.trim()).filter(Boolean) };
  try {
    return { value: JSON.parse(typed) };
  } catch (error) {
    return { trouble: `This is not JSON: ${error.message}` };
  }
}

function numbered(field, typed) {
  const value = Number(typed);
  if (typed === "" || !Number.isFinite(value)) return { trouble: "A number is needed." };
  if (field.isWhole && !Number.isInteger(value)) return { trouble: "A whole number is needed." };
  if (field.least !== null && value < field.least) return { trouble: `At least ${field.least}.` };
  if (field.above !== null && value <= field.above) return { trouble: `More than ${field.above}.` };
  if (field.most !== null && value > field.most) return { trouble: `At most ${field.most}.` };
  return { value };
}

function chosen(field, typed) {
  const value = field.options.find((one) => String(one) === String(typed));
  return value === undefined ? { trouble: `One of ${field.options.join(", ")}.` } : { value };
}

function isSame(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
