"""What calls of models beside the answers have cost."""

from __future__ import annotations

from local.protocol.message import Delivery, Message


class ModelUsed(Message):
    """Whoever has asked a model besides for an answer, after each call: what for (critic, classifier or summary), the
    tokens that the server has counted, and how long it took, in seconds."""

    subject = "model.used"
    delivery = Delivery.RECORDED
    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
