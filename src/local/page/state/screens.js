/** Which screen is shown, and the way to another one. */

import { SCREENS, screenOf } from "../screens.js";
import { readAddress } from "./actions.js";
import { currentId, isRailOpen, me, screen } from "./store.js";

/** The screens that this user has. */
export function screensHere() {
  return SCREENS.filter((one) => !one.ownerOnly || me.value.owner);
}

/** Whether this user has the screen. */
export function hasScreen(id) {
  const found = screenOf(id);
  return Boolean(found && (!found.ownerOnly || me.value.owner));
}

/** The address of a screen; the chat is at the conversation that was open last. @param {string} id @param {string[]} path */
export function addressOf(id, ...path) {
  if (id === "chat") return currentId.value ? `#/c/${encodeURIComponent(currentId.value)}` : "#/";
  return ["#", id, ...path.map(encodeURIComponent)].join("/");
}

/** @param {string} id @param {string[]} path */
export function goToScreen(id, ...path) {
  const address = addressOf(id, ...path);
  if (location.hash !== address) {
    history.pushState(null, "", address);
    readAddress();
  }
  isRailOpen.value = false;
}

export const isChat = () => screen.value === "chat";
