"""Which live memory belongs to which learner."""

from torch import nn

from wanderlearn.agent.clusters import LiveClusters
from wanderlearn.agent.examples import LiveExamples
from wanderlearn.agent.memory import LiveMemory
from wanderlearn.agent.prototypes import LivePrototypes
from wanderlearn.agent.wayfaring import LiveWayfarer
from wanderlearn.errors import WanderError
from wanderlearn.learners.cpm import CPM
from wanderlearn.learners.imp import OnlineIMP
from wanderlearn.learners.matchingnet import OnlineMatchingNet
from wanderlearn.learners.protonet import OnlineProtoNet
from wanderlearn.learners.wayfarer import Wayfarer

__all__ = ["live_memory"]


def live_memory(learner: nn.Module) -> LiveMemory:
    """An empty memory for this learner."""
    match learner:
        case CPM() | OnlineProtoNet():
            return LivePrototypes(learner)
        case OnlineMatchingNet():
            return LiveExamples(learner)
        case OnlineIMP():
            return LiveClusters(learner)
        case Wayfarer():
            return LiveWayfarer(learner)
    raise WanderError(
        f"An agent cannot live with a {type(learner).__name__}: its memory cannot grow, because its weights "
        "or its rules are made for a fixed set of classes. "
        "Use weights of a CPM, Online ProtoNet, MatchingNet, IMP or Wayfarer."
    )
