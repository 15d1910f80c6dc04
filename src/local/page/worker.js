/**
 * The service worker: keeps the page's files, so that an installed page opens without a connection and says so. `/` is
 * asked for each time, the files below `/app/DIGEST/` never change; what the API answers is never kept.
 */

const KEPT = "local2.page";

addEventListener("install", () => self.skipWaiting());
addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== location.origin) return;
  if (pathname === "/" && event.request.mode === "navigate") event.respondWith(newest(event.request));
  else if (/^\/app\/[0-9a-f]+\//.test(pathname)) event.respondWith(kept(event.request));
});

async function newest(request) {
  const cache = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok && !response.redirected) await keep(cache, response.clone());
    return response;
  } catch {
    return (await cache.match("/")) ?? Response.error();
  }
}

/** Keep the page, and no files of an earlier one. */
async function keep(cache, page) {
  const folder = /\/app\/[0-9a-f]+\//.exec(await page.clone().text())?.[0];
  if (!folder) return;
  await cache.put("/", page);
  for (const { url } of await cache.keys()) {
    const { pathname } = new URL(url);
    if (pathname !== "/" && !pathname.startsWith(folder)) await cache.delete(url);
  }
}

async function kept(request) {
  const cache = await caches.open(KEPT);
  const found = await cache.match(request.url);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await cache.put(request.url, response.clone());
  return response;
}
