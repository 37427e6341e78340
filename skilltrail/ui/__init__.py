"""The live page: the report's own views over a run as it goes, served on this machine.

passes.py       the token, and an address that works once
guard.py        who may ask: own host, own origin, who has the token
connections.py  how many may wait, and how long
watch.py        what is there: the logs, which one is on, what it does now
pages.py        the page of a log, made once for each state of the log
runner.py       `dvc` as a child process: start, stop, its last lines
child.py        the child's way of starting `dvc`
options.py      params as a form, what a start may change, and what it would run
app.py          the addresses
server.py       all of it behind one socket
"""
