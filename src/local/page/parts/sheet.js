/** A screen's own style, fetched with it: `await sheet("./memory.css", import.meta.url)` at the top of its file. */

/** @param {string} file @param {string} base */
export function sheet(file, base) {
  const { href } = new URL(file, base);
  if (document.querySelector(`link[href="${href}"]`)) return Promise.resolve();
  return new Promise((done, fail) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    link.onload = () => done(undefined);
    link.onerror = () => (link.remove(), fail(new Error("The style of this screen could not be loaded.")));
    document.head.append(link);
  });
}
