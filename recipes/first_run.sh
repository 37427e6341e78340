#!/bin/sh
# A small first run, and what it made of the seed skill.
set -eu
LIMITS=${LIMITS:--S data.limit.train=32 -S data.limit.selection=20 -S data.limit.test=20}
dvc exp run --quiet --name first -S epochs=1 -S batch_size=8 $LIMITS
python -m skilltrail summary
LAST=$(git for-each-ref --sort=-creatordate --format='%(refname)' refs/evolution-versions/first |
  sort -V | tail -1)
git diff refs/evolution-versions/first/v0 "$LAST" -- skill.md
