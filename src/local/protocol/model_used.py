"""What calls of models beside the answers have cost."""

from __future__ import annotations

from local.protocol.message import Delivery, Message


class ModelUsed(Message):
    """Whoever has asked a model besides for an answer: what for (critic, classifier, summary, judge_test,
    classifier_test, or a routine of reflection), how often, the tokens that the server has counted, how long it took,
    in seconds, and of a routine in a few words what came of it (`outcome`); of a check of a goal `about` is the
    goal."""

    subject = "model.used"
    delivery = Delivery.RECORDED
    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    calls: int = 1
    outcome: str = ""
    about: str = ""
