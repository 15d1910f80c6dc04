/** Figures in words, the same everywhere. */

/** 0.044 → "44 ms", 2.93 → "2.9 s", 95 → "1 min 35 s". */
export function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "";
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** How long ago, in seconds: 30 → "just now", 200000 → "2 days ago". */
export function ago(seconds) {
  if (seconds < 45) return "just now";
  for (const [unit, size] of [["day", 86_400], ["hour", 3_600], ["minute", 60]]) {
    const count = Math.round(seconds / Number(size));
    if (seconds >= Number(size) * 0.97) return `${count || 1} ${unit}${(count || 1) === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

/** 12345 → "12 345", with a space that does not break. */
export function figure(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** 2048 → "2 kB". */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 999_500) return `${(count / 1000).toFixed(count < 9950 ? 1 : 0)} kB`;
  if (count < 999_500_000) return `${(count / 1_000_000).toFixed(1)} MB`;
  return `${(count / 1_000_000_000).toFixed(1)} GB`;
}

/** "1 tool", "2 tools". */
export function counted(count, noun) {
  return `${figure(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** The time of the day, or the date of another day. `seconds` since 1970. */
export function moment(seconds, now) {
  const then = new Date(seconds * 1000);
  const isToday = then.toDateString() === new Date(now * 1000).toDateString();
  const time = then.toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });
  return isToday ? time : `${then.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${time}`;
}
