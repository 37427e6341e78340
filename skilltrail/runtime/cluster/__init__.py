"""Rollouts on a Ray cluster (`executor: ray`): only making them moves, nothing else does.

The head keeps the store, the order, the budget and the events, so that nothing of a log depends
on where its rollouts were made. Placing, restarting and carrying bytes is Ray's; what is added:
a node must answer as the head does (`node`), what a lost node was at is made elsewhere
(`maker`), and calls count on the head's account (`purse`). Ray is imported where it is used.
"""
