/** What is not as it should be with the system, in sentences. */

const STATES = {
  starting: "is starting",
  restarting: "is being started again",
  stopping: "is stopping",
  stopped: "was stopped",
  failed: "has failed and is tried again now and then",
};

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
