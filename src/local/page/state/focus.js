/**
 * Nobody loses their place. Where what opened over or beside the page closes, what was left for it has the focus again;
 * where what has the focus goes away or is switched off, what it was in has it. The second is for keys alone: who points
 * at things gets no keyboard on a phone for it.
 */

const OVERLAYS = "dialog, .inspector";

/** What something may be in, the innermost first, and what in there has the focus then. @type {Record<string, (home: Element) => any>} */
const HOMES = {
  ".changes": (home) => home.querySelector("button"),
  ".ask": (home) => home,
  ".inspector": (home) => home.querySelector("[role=tab][aria-selected=true]"),
  dialog: (home) => home.querySelector("[data-first]") ?? home.querySelector("input, button:not(:disabled)"),
  "article.turn": (home) => home,
};

/** What has the focus or had it last, what it is in, and whether it came there by a key. @type {any} */
let at = null;
/** What was left for each overlay. @type {WeakMap<Element, any>} */
const left = new WeakMap();

export function keepFocus() {
  addEventListener("focusin", ({ target }) => note(target));
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
}

function note(node) {
  const overlay = node.closest(OVERLAYS);
  if (overlay && !left.has(overlay)) left.set(overlay, at?.overlay?.matches("dialog") ? left.get(at.overlay) : at?.node); // one dialog in another's stead
  const homes = Object.entries(HOMES).flatMap(([selector, heir]) => (node.closest(selector) ? [{ home: node.closest(selector), heir }] : []));
  at = { node, overlay, homes, isByKey: node.matches(":focus-visible") };
}

function look() {
  if (!at || (at.node.isConnected && !at.node.disabled)) return;
  const { node, overlay, homes, isByKey } = at;
  at = null;
  if (![document.body, null, node].includes(/** @type {any} */ (document.activeElement))) return;
  if (overlay && !overlay.isConnected) back(left.get(overlay));
  else if (isByKey) (heirOf(homes) ?? question())?.focus();
}

function back(node) {
  if (node?.isConnected) node.focus({ preventScroll: true });
  else question()?.focus();
}

function heirOf(homes) {
  return homes.filter(({ home }) => home.isConnected).map(({ home, heir }) => heir(home)).find((heir) => heir);
}

function question() {
  return document.getElementById("question");
}
