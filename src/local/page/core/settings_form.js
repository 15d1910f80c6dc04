/**
 * Settings as a form: fields from a JSON Schema, and values from what was typed. What has no field of its own is typed
 * as JSON, so that every setting can be changed.
 * @typedef {{name: string, title: string, description: string, kind: "switch"|"number"|"choice"|"text"|"json",
 *   options: any[], least: number|null, most: number|null, isWhole: boolean, isNullable: boolean,
 *   isSecret: boolean, value: any, standard: any, isChanged: boolean}} Field
 */

/** @param {{schema: any, values: any, defaults: any}} settings @returns {Field[]} */
export function fieldsOf({ schema, values = {}, defaults = {} }) {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const type = resolved(property, schema);
    const value = Object.hasOwn(values, name) ? values[name] : (defaults[name] ?? type.default ?? null);
    const standard = Object.hasOwn(defaults, name) ? defaults[name] : (type.default ?? null);
    return {
      name,
      title: name.replaceAll("_", " "),
      description: property.description ?? type.description ?? "",
      kind: kindOf(type),
      options: type.enum ?? [],
      least: type.minimum ?? type.exclusiveMinimum ?? null,
      most: type.maximum ?? type.exclusiveMaximum ?? null,
      isWhole: type.type === "integer",
      isNullable: type.isNullable,
      isSecret: /(^|_)(key|token|secret|password)$/.test(name) || type.format === "password" || type.writeOnly === true,
      value,
      standard,
      isChanged: !isSame(value, standard),
    };
  });
}

/** A property without references and without "or null". */
function resolved(property, schema) {
  const name = /^#\/\$defs\/(.+)$/.exec(property.$ref ?? property.allOf?.[0]?.$ref ?? "")?.[1];
  if (name && schema.$defs?.[name]) return { ...resolved(schema.$defs[name], { ...schema, $defs: without(schema.$defs, name) }), default: property.default };
  const kinds = property.anyOf?.filter((one) => one.type !== "null");
  if (kinds?.length === 1) return { ...property, ...resolved(kinds[0], schema), isNullable: kinds.length < property.anyOf.length };
  return { isNullable: false, ...property };
}

function without(definitions, name) {
  return Object.fromEntries(Object.entries(definitions).filter(([one]) => one !== name)); // one that names itself ends
}

function kindOf(type) {
  if (type.enum) return "choice";
  return { boolean: "switch", integer: "number", number: "number", string: "text" }[type.type] ?? "json";
}

/** What a field shows for a value. */
export function shown(field, value) {
  if (value == null) return "";
  return field.kind === "json" ? JSON.stringify(value, null, 1) : String(value);
}

/** The value that was typed, or what is wrong with it: `{value}` or `{trouble}`. @param {Field} field */
export function parsed(field, typed) {
  if (field.kind === "switch") return { value: Boolean(typed) };
  if (field.isNullable && typed === "") return { value: null };
  if (field.kind === "number") return numbered(field, String(typed).trim());
  if (field.kind === "choice") return chosen(field, typed);
  if (field.kind === "text") return { value: typed };
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
