"""What kills, full disks and merges leave in a workspace, and how to put it right.

DVC detaches HEAD, changes params.yaml, puts uncommitted changes aside and writes dvc.lock in
place while an experiment runs; killed, it leaves all that as it is. One module per concept says
what it finds, what that blocks, and fixes it; `skilltrail doctor` asks them all, and
`skilltrail back` takes everything back to the run of HEAD. No stage uses this room: nothing
here can change a result.
"""
