"""The agents that need no language model: templates with a schedule search, and rules."""

from agents.offline.analyst import RuleAnalyst
from agents.offline.generator import OfflineGenerator

__all__ = ["OfflineGenerator", "RuleAnalyst"]
