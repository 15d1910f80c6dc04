import { test } from "node:test";
import assert from "node:assert/strict";
import { agreement, agreementInWords, judgementsIn, ratingsIn, verdictOf, votesInWords } from "../../src/local/page/core/judgements.js";

const grade = (query_id, score, more = {}) => ({ subject: "critique.result", sent_at: 1, session_id: "s", seq: 1, payload: { query_id, respondent_id: "A", score, status: "graded", ...more } });
const rated = (query_id, rating) => ({ subject: "user.feedback", payload: { query_id, rating } });

test("of an answer the latest grade counts, and a deleted one is not there", () => {
  const found = judgementsIn([grade("q", 4), grade("q", 2), { ...grade("gone", 1), payload: null }, grade("q", 3, { respondent_id: "B" })]);
  assert.deepEqual(found.map((one) => [one.query_id, one.score, one.sessionId]), [["q", 4, "s"], ["q", 3, "s"]]);
});

test("agreement counts ratings that hold, and a grade of 3 is neither", () => {
  const ratings = ratingsIn([rated("a", 1), rated("a", -1), rated("b", 1), rated("c", -1), rated("d", null)]);
  const counts = agreement(judgementsIn([grade("a", 5), grade("b", 2), grade("c", 3), grade("d", 1), grade("e", 5)]), ratings);
  assert.deepEqual(counts, { agreed: 1, differed: 1, undecided: 1 });
  assert.match(agreementInWords(counts), /agree on 1 of 2 rated answers \(50 %\)\. 1 of your ratings/);
  assert.match(agreementInWords({ agreed: 0, differed: 0, undecided: 0 }), /not rated any/);
});

test("a verdict and the votes are sentences", () => {
  assert.equal(verdictOf({ winner: "A" }), "A is better");
  assert.match(verdictOf({ winner: "tie", order_consistent: false }), /order/);
  assert.equal(verdictOf({ winner: null, status: "judge_unfit" }), "not compared");
  assert.equal(votesInWords({}), "");
  assert.match(votesInWords({ q: { vote: "A", winner: "A" }, p: { vote: "B", winner: "tie" } }), /1 of 2 blind comparisons/);
});
