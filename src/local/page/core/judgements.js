/** What the critic has made of answers, and how often the user agrees. */

const KIND = { "critique.result": "grade", "pairwise.result": "comparison" };

/** The grades and comparisons among entries of the journal with their payloads, the latest of each answer. @param {any[]} entries the latest first */
export function judgementsIn(entries) {
  const seen = new Set();
  const found = [];
  for (const { subject, sent_at: at, session_id: session, seq, payload } of entries) {
    const kind = KIND[subject];
    if (!kind || !payload) continue;
    const key = `${kind} ${payload.query_id} ${payload.respondent_id ?? ""}`;
    if (seen.has(key)) continue;
    seen.add(key);
    found.push({ key, kind, at, number: seq, sessionId: session ?? payload.session_id ?? null, ...payload });
  }
  return found;
}

/** The question of each query among the entries. @param {any[]} entries */
export function questionsIn(entries) {
  return new Map(entries.filter(({ subject, payload }) => subject === "query.received" && payload).map(({ payload }) => [payload.query_id, payload.query]));
}

/** The user's present ratings by the answer: 1, -1 or null. @param {any[]} entries the latest first */
export function ratingsIn(entries) {
  const found = new Map();
  for (const { subject, payload } of entries) {
    const key = subject === "user.feedback" && payload ? `${payload.query_id} ${payload.respondent_id ?? "A"}` : null;
    if (key !== null && !found.has(key)) found.set(key, payload.rating);
  }
  return found;
}

/** How the grades stand to the user's ratings: 4 and 5 are good, 1 and 2 bad, 3 is neither. */
export function agreement(judgements, ratings) {
  const counts = { agreed: 0, differed: 0, undecided: 0 };
  for (const { kind, score, query_id: id, respondent_id: who } of judgements) {
    const rating = ratings.get(`${id} ${who ?? "A"}`);
    if (kind !== "grade" || score == null || !rating) continue;
    if (score === 3) counts.undecided += 1;
    else if (score > 3 === rating > 0) counts.agreed += 1;
    else counts.differed += 1;
  }
  return counts;
}

/** In a sentence. */
export function agreementInWords({ agreed, differed, undecided }) {
  const decided = agreed + differed;
  if (!decided && !undecided) return "You have not rated any of these answers yet. Good and Bad below an answer rate it.";
  const rest = undecided ? ` ${undecided} of your ratings met a grade of 3, which is neither.` : "";
  return decided ? `The critic and you agree on ${agreed} of ${decided} rated answers (${Math.round((100 * agreed) / decided)} %).${rest}` : rest.trim();
}

/** What a comparison came to. */
export function verdictOf({ winner, status, order_consistent: isConsistent }) {
  if (winner === "tie") return isConsistent === false ? "a tie: the order of the two changed the judge's mind" : "a tie";
  if (winner) return `${winner} is better`;
  return { unparsed: "the judge's reply could not be read", failed: "the judge could not be asked", skipped: "not compared: too many answers waited", judge_unfit: "not compared" }[status] ?? "no verdict";
}

/** How often blind votes and verdicts were the same. @param {Record<string, {vote: string, winner: string | null}>} votes by query */
export function votesInWords(votes) {
  const compared = Object.values(votes).filter((one) => one.winner);
  if (!compared.length) return "";
  const same = compared.filter((one) => one.vote === one.winner).length;
  return `In this browser you and the critic chose the same in ${same} of ${compared.length} blind ${compared.length === 1 ? "comparison" : "comparisons"}.`;
}
