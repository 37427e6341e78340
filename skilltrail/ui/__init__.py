"""The live page: the report's own views over a run as it goes, served on this machine.

guard.py    who may ask: own host, own origin, a token beyond loopback
watch.py    what is there: the logs, which one is on, what it does now
pages.py    the page of a log, made once for each state of the log
runner.py   `dvc` as a child process: start, stop, its last lines
child.py    the child's way of starting `dvc`
options.py  params as a form, and what a change of them would run
app.py      the addresses
"""
