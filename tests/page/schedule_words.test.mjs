import { test } from "node:test";
import assert from "node:assert/strict";
import { OFFERED, scheduleWords, untilWords } from "../../src/local/page/core/schedule_words.js";

test("a schedule is said in words", () => {
  const words = {
    "0 8 * * *": "Every day at 8:00",
    "5 8,18 * * *": "Every day at 8:05 and 18:05",
    "0 9 * * 1-5": "Monday to Friday at 9:00",
    "0 9 * * mon-fri": "Monday to Friday at 9:00",
    "30 7 * * 1,3": "Every Monday and Wednesday at 7:30",
    "0 9 * * 7": "Every Sunday at 9:00",
    "0 * * * *": "Every hour",
    "20 * * * *": "Every hour at minute 20",
    "*/15 * * * *": "Every 15 minutes",
    "*/15 9-17 * * 1-5": "Every 15 minutes in the hours 9 to 17, Monday to Friday",
    "0 9-17 * * *": "Every hour from 9:00 to 17:00",
    "0 */4 * * *": "Every 4 hours from 0:00",
    "0,30 * * * *": "Every hour at the minutes 0 and 30",
    "0 0 1 * *": "On day 1 of the month at 0:00",
    "0 12 1 1,7 *": "On day 1 of the month at 12:00 in January and July",
    "0 12 13 * 5": "On day 13 of the month or every Friday at 12:00",
    "* * * * *": "Every minute",
    "@daily": "Every day at 0:00",
    "@weekly": "Every Sunday at 0:00",
    "every 30m": "Every 30 minutes",
    "every 1 hour": "Every hour",
    "in 10m": "Once, in 10 minutes",
    "at 2026-12-24T18:00": "Once, on 24 December 2026 at 18:00",
  };
  assert.deepEqual(Object.fromEntries(Object.keys(words).map((text) => [text, scheduleWords(text)])), words);
});

test("what is offered means what it says", () => {
  for (const [words, text] of OFFERED) assert.equal(scheduleWords(text).replace("Once, in", "In"), words);
});

test("what is no schedule has no words", () => {
  for (const text of ["", "hello", "61 * * * *", "* * *", "0 8 * * 8", "5-1 * * * *", "*/0 * * * *", "every 0m", "every 5 apples", "at 2026-13-01T10:00", "1-2-3 * * * *", "a,b * * * *"]) assert.equal(scheduleWords(text), "", text);
});

test("how long until a time", () => {
  assert.deepEqual([0, 20, 300, 7200, 200_000].map(untilWords), ["now", "in less than a minute", "in 5 minutes", "in 2 hours", "in 2 days"]);
});
