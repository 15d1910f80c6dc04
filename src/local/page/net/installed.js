/** Has the service worker keep the page's files, where a browser has one: over https, or on this machine. */

const PATH = "/worker.js";

export function keepPage() {
  const policy = globalThis.trustedTypes?.createPolicy("worker", { createScriptURL: () => PATH }); // the only one that there is
  const path = /** @type {any} */ (policy?.createScriptURL("") ?? PATH);
  navigator.serviceWorker?.register(path).catch(() => {}); // a browser may forbid it
}
