"""Grades, comparisons and ratings: the public path."""

from __future__ import annotations

from local.critic.messages import ComparisonRequest as ComparisonRequest
from local.critic.messages import ComparisonResult as ComparisonResult
from local.critic.messages import CritiqueResult as CritiqueResult
from local.critic.messages import JudgementStatus as JudgementStatus
from local.critic.messages import PairwiseResult as PairwiseResult
from local.critic.messages import RewardEvent as RewardEvent
from local.critic.messages import UserFeedback as UserFeedback
