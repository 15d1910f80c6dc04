/** How this page looks in this browser: its theme and the size of its text. `theme.js` reads the same before first paint. */

import { signal } from "../html.js";

export const THEMES = { system: "As the system", light: "Light", dark: "Dark" };
export const TEXT_SIZES = { 100: "100 %", 112: "112 %", 125: "125 %" };

const PAPER = { light: "#fbfaf7", dark: "#171614" };

export const theme = signal(kept("theme", THEMES));
export const textSize = signal(kept("text", TEXT_SIZES));

function kept(name, choices) {
  const value = document.documentElement.dataset[name] ?? "";
  return Object.hasOwn(choices, value) ? value : Object.keys(choices)[0];
}

export function chooseTheme(value) {
  theme.value = value;
  keep("theme", value);
  colourBrowser();
}

export function chooseTextSize(value) {
  textSize.value = value;
  keep("text", value);
}

function keep(name, value) {
  document.documentElement.dataset[name] = value;
  try {
    localStorage.setItem(`local2.${name}`, value);
  } catch {
    // it holds until the page is left
  }
}

/** The browser's own frame takes the page's colour. */
export function colourBrowser() {
  /** @type {NodeListOf<HTMLMetaElement>} */
  const metas = document.querySelectorAll("meta[name=theme-color]");
  for (const meta of metas) meta.content = PAPER[theme.peek() === "system" ? (meta.media.includes("dark") ? "dark" : "light") : theme.peek()];
}
