#!/bin/sh
# Take the instruction out of a trained skill, train on from there, and ask whether it came back.
# Needs first_run.sh.
set -eu
LIMITS=${LIMITS:--S data.limit.train=32 -S data.limit.selection=20 -S data.limit.test=20}
SEED=skills/seeds/without.md
git show refs/evolution-versions/first/v1:skill.md > .skilltrail/trained.md
LINE=$(grep -m 1 '^- ' .skilltrail/trained.md || grep -m 1 '^Answer: ' .skilltrail/trained.md)
grep -v -x -F -e "$LINE" .skilltrail/trained.md > "$SEED"
git add "$SEED"
dvc exp run --quiet --name come-back -S skill.seed=$SEED -S epochs=1 -S batch_size=8 $LIMITS
echo "Taken out: $LINE"
python -m stages.cli audit --text "$LINE" || echo "It did not come back."
