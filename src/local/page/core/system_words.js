/** What is not as it should be with the system, in sentences. */

const STATES = {
  starting: "is starting",
  restarting: "is restarting",
  stopping: "is stopping",
  stopped: "was stopped",
  failed: "has failed; LoCAL2 tries to start it again",
};

/** The participants with what is new of one; who takes part no longer is not named any more.
 * @param {Map<string, any>} known by name @param {any} row */
export function withParticipant(known, row) {
  const next = new Map(known);
  if (row.state !== "gone") next.set(row.name, row);
  else if (next.get(row.name)?.pid === row.pid) next.delete(row.name); // else another one has taken its place
  return next;
}

/** @param {Iterable<any>} rows of /participants @returns {{name: string, text: string}[]} */
export function troubles(rows) {
  return [...rows]
    .filter((row) => row.state !== "ready" || problemOf(row))
    .map((row) => {
      const why = row.state === "ready" ? problemOf(row) : row.detail;
      const what = row.state === "ready" ? "has a problem" : (STATES[row.state] ?? `is ${row.state}`);
      return { name: row.name, text: `${row.name} ${what}${why ? `: ${why}` : ""}` };
    });
}

function problemOf(row) {
  return Object.entries(row.details ?? {}).find(([name]) => name.endsWith("problem"))?.[1] ?? "";
}
