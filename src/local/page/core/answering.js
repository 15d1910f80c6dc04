/** The form in which the settings of a conversation are chosen. */

/** A form's texts as settings: only what was filled in. Throws a `RangeError` that names the field.
 * @param {Record<string, string>} form */
export function settingsFrom(form) {
  const settings = {};
  if (form.profile) settings.profile = form.profile;
  if (form.instructions.trim()) settings.instructions = form.instructions.trim();
  for (const [name, { least, most, isWhole, title }] of Object.entries(RANGES)) {
    const text = form[name].trim().replace(",", ".");
    if (!text) continue;
    const value = Number(text);
    const isGood = Number.isFinite(value) && value >= least && value <= most && (!isWhole || Number.isInteger(value));
    if (!isGood) throw new RangeError(`${title}: ${form[name].trim()} is not a ${isWhole ? "whole number" : "number"} from ${least} to ${most}`);
    settings[name] = value;
  }
  return settings;
}

/** The numbers of a conversation's settings, with what the API takes. */
export const RANGES = {
  temperature: { title: "Temperature", least: 0, most: 2, isWhole: false, help: "Lower is more predictable, higher more varied: 0 to 2." },
  top_p: { title: "Top-p", least: 0.01, most: 1, isWhole: false, help: "Considers only the likeliest words that together have this probability: 0.01 to 1." },
  max_tokens: { title: "Longest answer", least: 1, most: 1_000_000, isWhole: true, help: "In tokens: the answer stops there. The limit in the settings still applies." },
};
