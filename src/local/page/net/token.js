/** The owner's or a user's token, where one is needed: it comes in the fragment of the printed link, or is typed. */

import { signal } from "../html.js";

const KEPT_AS = "local2.token";

export const token = signal(read());
/** Whether the API has refused a request for want of a token. */
export const isRefused = signal(false);

/** Keep a token until this tab is closed. @param {string} value */
export function keepToken(value) {
  token.value = value;
  isRefused.value = false;
  try {
    sessionStorage.setItem(KEPT_AS, value);
  } catch {
    // it is kept for as long as the page is open
  }
}

function read() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found) {
    history.replaceState(null, "", location.pathname + location.search);
    const value = decodeURIComponent(found[1]);
    try {
      sessionStorage.setItem(KEPT_AS, value);
    } catch {
      // as above
    }
    return value;
  }
  try {
    return sessionStorage.getItem(KEPT_AS) ?? "";
  } catch {
    return "";
  }
}
