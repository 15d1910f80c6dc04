/**
 * Work on the newest of what is given, one at a time: what comes meanwhile waits, and of that only the last. So
 * somebody who types is answered at once, and asks no faster than there are answers.
 * @template T
 * @param {(value: T, isLast: () => boolean) => Promise<void>} work `isLast` tells whether nothing newer waits
 * @returns {(value: T) => void}
 */
export function latest(work) {
  let isBusy = false;
  /** @type {{value: T} | null} */
  let waiting = null;
  const run = async (value) => {
    isBusy = true;
    await work(value, () => waiting === null).catch(() => {}); // it tells its failures itself
    isBusy = false;
    const next = waiting;
    waiting = null;
    if (next) void run(next.value);
  };
  return (value) => {
    if (isBusy) waiting = { value };
    else void run(value);
  };
}
