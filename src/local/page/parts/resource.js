/** What a route answers, for as long as a view is shown. */

import { useEffect, useState } from "../html.js";
import { request } from "../net/api.js";

/** Load `path` and again whenever it changes; null loads nothing. `data` is null until it is there and stays through a
 * reload; `trouble` is an `ApiFailure` or null. @param {string | null} path */
export function useResource(path) {
  const [found, put] = useState({ path, data: null, trouble: null });
  const [turn, again] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    request("GET", path, undefined, { signal: stop.signal }).then(
      (data) => stop.signal.aborted || put({ path, data, trouble: null }),
      (trouble) => stop.signal.aborted || put((before) => ({ path, data: before.path === path ? before.data : null, trouble }))
    );
    return () => stop.abort();
  }, [path, turn]);
  const isOf = found.path === path;
  return { data: isOf ? found.data : null, trouble: isOf ? found.trouble : null, reload: () => again((count) => count + 1) };
}
