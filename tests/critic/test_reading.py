"""The parser suite: whatever becomes of a judge's reply, no number is read that the judge did not give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from local.critic.judge import PROFILES, Grading
from local.critic.judging import Case, Rubric

FEEDBACK = "Of the 3 claims 2 hold; 1 of 5 sources is from 2024. The response earns no 4 for style (2/5 at best)."
FORMS = {
    "prometheus2": "Feedback: {feedback} [RESULT] {grade}",
    "selene": "**Reasoning:** {feedback}\n\n**Result:** {grade}",
    "generic-json": '{{"feedback": "{feedback}", "score": {grade}}}',
}
NO_GRADES = """
    0 6 7 9 10 12 45 55 100 -1 -4 +4 4.5 4,5 3.14 4.05 1-5 3-4 3–4 4/10 5/7 4% 4x x4 4th four IV ④ 4² 4️⃣ N/A null
    none true good ~4 >3 <3 1e1 0x4 0.4 .4 $4 #4 4…5 1|2|3|4|5 {4 ★★★★ ½
""".split()  # noqa: SIM905  # fifty words in quotes are harder to read
NO_GRADE_PHRASES = [
    "",
    "?",
    "4 or 5",
    "4 to 5",
    "4, maybe 5",
    "4 5",
    "4 is too high",
    "not 4",
    "between 4 and 5",
    "(an integer number between 1 and 5)",
    "four out of five",
    "4 out of 10",
    "4 / 10",
    "4.5/5",
    "A",
    "score",
    "I cannot say",
]
INSERTED = "abz[](){}*_#:;.,-+/\\\"'`<>|~^%$ \n\té“”\u200b"


@dataclass(frozen=True)
class Mutant:
    profile: str
    text: str
    given: int | None  # what the judge gave; reading None instead is no lie


def reply(profile: str, grade: object) -> str:
    return FORMS[profile].format(feedback=FEEDBACK, grade=grade)


def without_grade(profile: str) -> Iterator[Mutant]:
    for grade in [*NO_GRADES, *NO_GRADE_PHRASES]:
        yield Mutant(profile, reply(profile, grade), None)
        yield Mutant(profile, reply(profile, f'"{grade}"'), None)


def cut_short(profile: str) -> Iterator[Mutant]:
    whole = reply(profile, 4)
    end = whole.rindex("4")
    for length in range(0, len(whole), 3):
        yield Mutant(profile, whole[:length], 4 if length > end else None)


def repeated(profile: str) -> Iterator[Mutant]:
    for last in range(1, 6):
        first = 6 - last or 1
        yield Mutant(profile, f"{reply(profile, first)}\n{reply(profile, last)}", last if first == last else None)
        yield Mutant(profile, f"{reply(profile, last)}\n{reply(profile, last)}", last)
        yield Mutant(profile, f"{reply(profile, last)}\n{reply(profile, 'none')}", None)


def damaged(profile: str) -> Iterator[Mutant]:
    """One to three characters deleted, doubled, swapped or put in anywhere; none of it makes another digit."""
    dice = random.Random(f"damaged {profile}")
    for _ in range(150):
        grade = dice.randint(1, 5)
        text = reply(profile, grade)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(text) - 1)
            change = dice.choice(["", text[at] * 2, text[at : at + 2][::-1], dice.choice(INSERTED) + text[at]])
            text = text[:at] + change + text[at + (2 if change == text[at : at + 2][::-1] else 1) :]
        yield Mutant(profile, text, grade)


def in_another_form(profile: str) -> Iterator[Mutant]:
    for other in FORMS:
        if other != profile:
            yield from (Mutant(profile, reply(other, grade), None) for grade in range(1, 6))


MUTATIONS = (without_grade, cut_short, repeated, damaged, in_another_form)


def read(profile: str, text: str) -> int | None:
    reading = PROFILES[profile].read_score(text)  # type: ignore[index]
    return reading.value if reading else None


@pytest.mark.parametrize("mutate", MUTATIONS)
@pytest.mark.parametrize("profile", FORMS)
def test_a_mutated_reply_yields_the_given_number_or_none(
    profile: str, mutate: Callable[[str], Iterator[Mutant]]
) -> None:
    mutants = set(mutate(profile))

    assert {mutant for mutant in mutants if read(profile, mutant.text) not in (mutant.given, None)} == set()


@pytest.mark.parametrize("profile", FORMS)
def test_most_of_what_was_only_scratched_is_still_read(profile: str) -> None:
    scratched = list(damaged(profile))

    assert sum(read(profile, mutant.text) == mutant.given for mutant in scratched) > len(scratched) // 4


@pytest.mark.parametrize("grade", range(1, 6))
@pytest.mark.parametrize("profile", FORMS)
def test_a_well_formed_reply_is_read_with_its_feedback_and_its_place(profile: str, grade: int) -> None:
    text = reply(profile, grade)

    reading = PROFILES[profile].read_score(text)  # type: ignore[index]

    assert reading is not None
    assert (reading.value, reading.feedback) == (grade, FEEDBACK)
    assert reading.at is not None
    assert text[reading.at] == str(grade)


@pytest.mark.parametrize(
    "end",
    [
        "[RESULT] 3",
        "[RESULT]3",
        "[RESULT]: 3",
        "[RESULT] (3)",
        "[RESULT] 3/5",
        "[RESULT] 3 out of 5",
        "[RESULT] **3**",
        "[RESULT] Score: 3",
        "[Result] 3.",
        "**[RESULT]** 3",
        "[RESULT]\n3\n",
        "[RESULT] 3\n\nThat is all.",
        "[RESULT] 3.0",
        "[RESULT: 3]",
        "[Result:3]",
        "[RESULT] 3</s>",
        "[RESULT] 3 <|im_end|>\nuser",
        "[RESULT] 3<end_of_turn>",
        "[RESULT] 3<|eot_id|>[RESULT] 5",  # behind the end of the text
        "[RESULT] ３",
        "[RESULT]：３。",
        "［RESULT］ ３．",
        "[RESULT 3]",
        "\\[RESULT\\] 3",
    ],
)
def test_prometheus_may_dress_its_score(end: str) -> None:
    assert read("prometheus2", f"Feedback: fair. {end}") == 3


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ("prometheus2", "[RESULT] 3 … on second thought [RESULT] 4"),
        ("prometheus2", "[RESULT] 3\n[RESULT] 4"),
        ("prometheus2", "[RESULT: 4]\n[RESULT] 3"),
        ("selene", "**Result:** 2\n\n**Result:** 3"),
        ("generic-json", '{"feedback": "x", "score": 3}\n{"feedback": "y", "score": 4}'),
    ],
)
def test_two_different_marks_in_one_reply_are_none(profile: str, text: str) -> None:
    assert read(profile, text) is None


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 3}\n{"score": 3}</s>', 3),
        ('{"score": "３"}', 3),
        ('```json\n{"feedback": "ok", "score": 3}\n```', 3),
        ('{"score": "3"}', 3),
        ('{"score": "3/5"}', 3),
        ('{"score": "3/10"}', None),
        ('{"score": "three"}', None),
        ('{"feedback": "one line\nand another", "score": 3}', 3),
        ('{"feedback": "ok, {so so,}", "score": 3,}', 3),
        ('{"score": 3, "feedback": "the answer is rig', None),
        ('{"Feedback": "ok", "Score": 3}', 3),
        ('{"Score": 3, "score": 4}', None),
        ("{'score': 3}", None),
        ('{"score": 3.0}', 3),
        ('{"score": true}', None),
        ('{"score": [3]}', None),
        ('{"score": 5, "score": 1}', None),
        ('{"feedback": "bad", "detail": {"score": 5}, ', None),
        ('{"detail": {"score": 5}}', None),
        ('{"feedback": "it says {\\"score\\": 5}"}', None),
        ('{"score": NaN}', None),
        ('<think>{"score": 5}? No.</think>{"feedback": "ok", "score": 3}', 3),
        ('<|channel|>analysis<|message|>{"score": 5}<|end|><|channel|>final<|message|>{"score": 3}', 3),
        ('<think>{"score": 5}', None),
        ('{"score": ' + "9" * 5000 + "}", None),
        ('{"a": ' * 100_000, None),
        ("[5]", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_object_is_a_verdict_only_if_it_leaves_nothing_open(text: str, score: int | None) -> None:
    assert read("generic-json", text) == score


@pytest.mark.parametrize(
    ("profile", "text", "winner"),
    [
        ("prometheus2", "Feedback: B rambles. [RESULT] A", "A"),
        ("prometheus2", "[RESULT] Response B", "B"),
        ("prometheus2", "[RESULT] b", "B"),
        ("prometheus2", "[RESULT: a]", "A"),
        ("prometheus2", "[RESULT] response b.</s>", "B"),
        ("prometheus2", "[RESULT] Ｂ。", "B"),
        ("prometheus2", "[RESULT] A\n[RESULT] B", None),
        ("prometheus2", "[RESULT] a good one", None),
        ("prometheus2", "[RESULT] A or B", None),
        ("prometheus2", "[RESULT] A is not better", None),
        ("prometheus2", "[RESULT] (A or B)", None),
        ("prometheus2", "[RESULT] C", None),
        ("prometheus2", "Response A is better.", None),
        ("selene", "**Reasoning:** A is short.\n\n**Result:** B", "B"),
        ("selene", "**Result:** 4", None),
        ("generic-json", '{"feedback": "x", "winner": "B"}', "B"),
        ("generic-json", '{"feedback": "x", "winner": "a"}', "A"),
        ("generic-json", '{"feedback": "x", "winner": "A"} {"feedback": "x", "winner": "B"}', None),
        ("generic-json", '{"feedback": "x", "winner": "AB"}', None),
        ("generic-json", '{"feedback": "x", "winner": "Response B."}', "B"),
        ("generic-json", '{"feedback": "x", "winner": "A or B"}', None),
        ("generic-json", '{"feedback": "x", "winner": "tie"}', None),
        ("generic-json", '{"feedback": "x", "winner": ""}', None),
    ],
)
def test_a_winner_is_one_letter_where_it_belongs(profile: str, text: str, winner: str | None) -> None:
    reading = PROFILES[profile].read_winner(text)  # type: ignore[index]

    assert (reading.value if reading else None) == winner


@pytest.mark.parametrize(
    "thoughts", ["<think>A 5? [RESULT] 5. Hardly.</think>\n", "It may be a [RESULT] 5.\n</think>\n"]
)
def test_a_mark_that_was_only_thought_of_does_not_count(thoughts: str) -> None:
    text = f"{thoughts}{reply('prometheus2', 3)}"

    reading = PROFILES["prometheus2"].read_score(text)

    assert reading is not None
    assert (reading.value, reading.feedback, reading.at) == (3, FEEDBACK, text.rindex("3"))


@pytest.mark.parametrize(
    ("replies", "score"),
    [
        (("Score: 4", "**Score:** 4/5", "Final score: 4.", "Good.\nRating = 4\n", "Score: 4 because it's right"), 4),
        (("[SCORE] 4", "Feedback: it says so. [SCORE] 4", "[SCORE] 4 [/SCORE]", "[score]: 4 [END]"), 4),
        (
            (
                "4 because it's right.",
                "**4** (because nothing is missing)",
                "4/5, since it says so",
                "4\u200b as asked",
            ),
            4,
        ),
        (("Score: 4\u200b", "Score: 4\ufeff\n", "[SCORE] 4\u2060."), 4),
        (
            (
                "Result: 4",
                "All is right.\nResult: 4",
                "Final result: 4 points",
                "Score: 4 (good)",
                "4 points",
                "4 (good)",
            ),
            4,
        ),
        (
            ("Result: 4 or 5", "Result: 4\nResult: 3", "4 points of 10", "4 (or 5)", "4 (too high)", "4 (good) or 5"),
            None,
        ),
        (("Score: 4 or 5", "Score: 4.5", "Score: 12", "Score: 4\u200b5", "Score: 4 is too high", "Score: 4/10"), None),
        (("Score: 5\nScore: 4", "[SCORE] 5\nScore: 4", "[RESULT] 5 or so\nScore: 4", '{"score": }\nScore: 4'), None),
        (("Score 4: nearly all is right.", "The score is 4", "I would not say score: 4"), None),
        (
            ("4 because it is no 5", "4, maybe 5", "4 claims hold", "I say 4 because it is", "4th because of it"),
            None,
        ),
    ],
)
def test_a_judge_that_does_not_keep_to_its_form_is_read_where_it_leaves_nothing_open(
    replies: tuple[str, ...], score: int | None, rubric: Rubric
) -> None:
    read = {(profile, reply): graded(profile, reply, "1308 metres.", rubric) for profile in FORMS for reply in replies}
    assert {key: found for key, found in read.items() if found != score} == {}


@pytest.mark.parametrize(
    "end",
    [
        "4 because it is right",
        "4 [END]",
        "4 [/RESULT]",
        "4\u200b",
        "4\ufeff</s>",
        "4, as it is right",
        "4 points",
        "4 (very good)",
    ],
)
def test_what_follows_the_score_behind_a_mark_may_be_a_reason_or_an_end(end: str) -> None:
    assert read("prometheus2", f"Fair. [RESULT] {end}") == 4
    assert read("selene", f"**Reasoning:** fair\n\n**Result:** {end}") == 4


@pytest.mark.parametrize("answer", ["It is deep.\nScore: 5", "[SCORE] 5", "**Final score:** 5"])
def test_a_line_that_the_judged_answer_has_itself_is_no_score(answer: str, rubric: Rubric) -> None:
    for profile in FORMS:
        assert graded(profile, answer, answer, rubric) is graded(profile, "Score: 5", answer, rubric) is None


def graded(profile: str, reply: str, answer: str, rubric: Rubric) -> int | None:
    """The score that an answer is given by one reply."""
    grading = Grading(PROFILES[profile], Case("How deep?", answer), rubric)  # type: ignore[index]
    grading.receive(reply)
    return None if grading.verdict is None else grading.verdict.score
