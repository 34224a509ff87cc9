"""The live agent: a trained learner with the user's own labels, one picture at a time.

`catalogue` begins one, `agent` has its verbs. Beneath: `life` (memory, labels and every change of them),
`prototypes`, `examples`, `clusters` and `wayfaring` (the memories of the learners, in place), `inputs`
(pictures of any kind), `saving` and `journal` (files), `changes` (what both are made of), `many` (several
streams).
"""

from wanderlearn.agent.agent import Agent
from wanderlearn.agent.answer import Answer, Explanation, Neighbour
from wanderlearn.agent.catalogue import ShippedWeights, load, weights
from wanderlearn.agent.many import Agents

__all__ = ["Agent", "Agents", "Answer", "Explanation", "Neighbour", "ShippedWeights", "load", "weights"]
