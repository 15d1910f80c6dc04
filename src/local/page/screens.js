/**
 * The screens, in the order of the rail. `place`: "rail" is in the bar of a phone too, "more" in the sheet behind it.
 * `key` is the letter after `g`. The chat is drawn by the page itself and has no `load`.
 * @typedef {{id: string, title: string, icon: string, key: string, place: "rail" | "more", ownerOnly: boolean,
 *   load?: () => Promise<{Screen: any}>}} Place
 */

/** @type {Place[]} */
export const SCREENS = [
  { id: "chat", title: "Chat", icon: "chat", key: "c", place: "rail", ownerOnly: false },
  { id: "memory", title: "Memory", icon: "memory", key: "m", place: "rail", ownerOnly: false, load: () => import("./memory/screen.js") },
  { id: "activity", title: "Activity", icon: "activity", key: "a", place: "rail", ownerOnly: false, load: () => import("./activity/screen.js") },
  { id: "agents", title: "Agents", icon: "agents", key: "g", place: "more", ownerOnly: false, load: () => import("./agents/screen.js") },
  { id: "schedules", title: "Schedules", icon: "schedules", key: "d", place: "more", ownerOnly: false, load: () => import("./schedules/screen.js") },
  { id: "tools", title: "Tools", icon: "tools", key: "t", place: "more", ownerOnly: true, load: () => import("./tools/screen.js") },
  { id: "participants", title: "Participants", icon: "participants", key: "p", place: "more", ownerOnly: true, load: () => import("./participants/screen.js") },
  { id: "system", title: "System", icon: "system", key: "y", place: "more", ownerOnly: true, load: () => import("./system/screen.js") },
  { id: "settings", title: "Settings", icon: "settings", key: "s", place: "rail", ownerOnly: false, load: () => import("./settings/screen.js") },
];

export const screenOf = (id) => SCREENS.find((one) => one.id === id);
