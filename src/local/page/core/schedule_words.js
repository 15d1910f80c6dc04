/** Schedules in words: a cron expression, a time, a delay or an interval as a person would say it. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const UNITS = { s: "second", m: "minute", min: "minute", h: "hour", d: "day", w: "week" };
const NAMED = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *" };
/** Least and most of each field; the names that it may have instead of numbers begin with `first`. */
const FIELDS = [{ least: 0, most: 59 }, { least: 0, most: 23 }, { least: 1, most: 31 }, { least: 1, most: 12, names: MONTHS, first: 1 }, { least: 0, most: 7, names: DAYS, first: 0 }];

/** What a form offers: the words and the schedule. @type {[string, string][]} */
export const OFFERED = [
  ["Every day at 8:00", "0 8 * * *"],
  ["Monday to Friday at 9:00", "0 9 * * 1-5"],
  ["Every Monday at 9:00", "0 9 * * 1"],
  ["Every hour", "0 * * * *"],
  ["In 10 minutes", "in 10m"],
];

/** One sentence without a full stop; "" for what is no schedule. The API alone decides what is valid. @param {string} text */
export function scheduleWords(text) {
  const words = text.trim().replace(/\s+/g, " ");
  const span = /^(every|in) (\d{1,9}) ?([a-z]+)$/i.exec(words);
  if (span) return spanWords(span[1].toLowerCase(), Number(span[2]), span[3].toLowerCase());
  const at = /^at (\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)/i.exec(words);
  if (at) return MONTHS[Number(at[2]) - 1] ? `Once, on ${Number(at[3])} ${MONTHS[Number(at[2]) - 1]} ${at[1]} at ${Number(at[4])}:${at[5]}` : "";
  const fields = (NAMED[words.toLowerCase()] ?? words).split(" ");
  const read = fields.length === 5 ? fields.map((field, index) => readField(field, FIELDS[index])) : [];
  return read.length && read.every(Boolean) ? cronWords(read) : "";
}

function spanWords(kind, count, unit) {
  const name = UNITS[unit] ?? UNITS[Object.keys(UNITS).find((one) => [UNITS[one], `${UNITS[one]}s`].includes(unit)) ?? ""];
  if (!name || !count) return "";
  if (kind === "in") return `Once, in ${count} ${name}${count === 1 ? "" : "s"}`;
  return count === 1 ? `Every ${name}` : `Every ${count} ${name}s`;
}

/** `{values, step, isAll}` of one field, null for none. `step` is set for every n-th of all. */
function readField(text, { least, most, names, first = 0 }) {
  const number = (word) => {
    if (/^\d{1,2}$/.test(word)) return Number(word);
    const index = names && word.length === 3 ? names.findIndex((name) => name.slice(0, 3).toLowerCase() === word.toLowerCase()) : -1;
    return index < 0 ? NaN : index + first;
  };
  const values = new Set();
  for (const part of text.split(",")) {
    const [, range, , by] = /^([^/]+)(\/(\d{1,2}))?$/.exec(part) ?? [];
    if (!range) return null;
    const ends = range === "*" ? [least, names === DAYS ? 6 : most] : range.split("-").map(number);
    const from = ends[0];
    const to = ends[1] ?? (by ? most : from);
    if (ends.length > 2 || !(from >= least && to <= most && from <= to) || by === "0" || by === "00") return null;
    for (let value = from; value <= to; value += Number(by ?? 1)) values.add(names === DAYS ? value % 7 : value);
  }
  const step = /^\*\/(\d+)$/.exec(text);
  return { values: [...values].sort((one, other) => one - other), step: step ? Number(step[1]) : 0, isAll: text === "*" };
}

function cronWords([minute, hour, date, month, day]) {
  const time = timeWords(minute, hour);
  const days = dayWords(date, day);
  const months = month.isAll ? "" : ` in ${listed(month.values.map((value) => MONTHS[value - 1]))}`;
  const isOften = !time.startsWith("at ");
  const sentence = isOften ? `${time}${days === "every day" ? "" : `, ${days}`}` : `${days} ${time}`;
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}${months}`;
}

function timeWords(minute, hour) {
  const isOnce = minute.values.length === 1;
  const at = (value) => `${value}:${String(minute.values[0]).padStart(2, "0")}`;
  if (isOnce && !hour.isAll && !hour.step && hour.values.length <= 6) return `at ${listed(hour.values.map(at))}`;
  if (isOnce && hour.isAll) return minute.values[0] ? `every hour at minute ${minute.values[0]}` : "every hour";
  if (isOnce && hour.step) return `every ${hour.step === 1 ? "hour" : `${hour.step} hours`} from ${at(0)}`;
  if (isOnce) return isRun(hour.values) ? `every hour from ${at(hour.values[0])} to ${at(hour.values.at(-1))}` : `at ${listed(hour.values.map(at))}`;
  const often = minute.isAll ? "every minute" : minute.step ? `every ${minute.step} minutes` : `at the minutes ${listed(minute.values)}`;
  const hours = hour.isAll ? "" : ` in the ${hour.values.length === 1 ? "hour" : "hours"} ${isRun(hour.values) ? `${hour.values[0]} to ${hour.values.at(-1)}` : listed(hour.values)}`;
  return minute.isAll || minute.step ? `${often}${hours}` : `every hour ${often}${hours}`.replace("every hour at", hour.isAll ? "every hour at" : "at");
}

/** Both are asked for: then cron runs on either. */
function dayWords(date, day) {
  const dates = date.isAll ? "" : `on day ${listed(date.values)} of the month`;
  const isRange = day.values.length > 2 && isRun(day.values);
  const days = day.isAll || day.values.length === 7 ? "" : isRange ? `${DAYS[day.values[0]]} to ${DAYS[day.values.at(-1)]}` : `every ${listed(day.values.map((value) => DAYS[value]))}`;
  if (dates && days) return `${dates} or ${days}`;
  return dates || days || "every day";
}

function isRun(values) {
  return values.length > 2 && values.every((value, index) => value === values[0] + index);
}

function listed(words) {
  return words.length < 2 ? String(words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** How long until then: "in 5 minutes", "in 2 days"; "now" for what is due. @param {number} seconds */
export function untilWords(seconds) {
  for (const [unit, size] of [["day", 86_400], ["hour", 3_600], ["minute", 60]]) {
    const count = Math.round(seconds / Number(size));
    if (seconds >= Number(size) * 0.97) return `in ${count || 1} ${unit}${(count || 1) === 1 ? "" : "s"}`;
  }
  return seconds > 0 ? "in less than a minute" : "now";
}

/** What becomes of times that pass while LoCAL2 does not run. */
export const MISSED = { once: "one run makes up for all of them", all: "each is made up for", none: "they are left out" };
