/** The memories added to the prompt, in words. */

const LONGEST = 80;

/** One line for a turn's context, "" if there are none. */
export function contextLine(context) {
  if (!context) return "";
  const { facts = [], recalled = [] } = context;
  const [first, ...more] = recalled;
  const others = more.length ? ` and ${more.length} more` : "";
  const found = first ? `Recalled: “${shortened(first.query)}”, said on ${dayOf(first.asked_at)}${others}` : "";
  const told = facts.length ? `Known about you: ${facts.length} ${facts.length === 1 ? "fact" : "facts"}` : "";
  return [found, told].filter(Boolean).join(" · ");
}

/** The local day of a time in seconds since 1970, as 2026-11-20. */
export function dayOf(seconds) {
  const day = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
