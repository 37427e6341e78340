"""The prompted optimizer: any chat model proposes, our code checks.

optimizer   the verbs
reflecting, merging, choosing, writing   one verb or two each: prompt, schema, checks
ask         one question: the call as a fact, one corrective retry, what is rejected
replies, scan   an object out of a reply, or the fault
proposals   edits read one by one
prompts, past, show, fence   what is asked: files, the run so far, trajectories as data
"""
