#!/bin/sh
# Take a section out of a trained skill, train on from there, and ask whether it came back.
# Needs first_run.sh.
set -eu
LIMITS=${LIMITS:--S data.limit.train=32 -S data.limit.selection=20 -S data.limit.test=20}
SEED=skills/seeds/without.md
git show refs/evolution-versions/first/v1:skill.md > .skilltrail/trained.md || {
  echo "The first run accepted nothing, so there is nothing to take out."
  exit 0
}
# Paragraphs 1 and 2 are the seed's; the third is the first that training wrote.
LINE=$(awk -v RS= 'NR == 3' .skilltrail/trained.md | head -n 1)
awk -v RS= -v ORS='\n\n' 'NR != 3' .skilltrail/trained.md > "$SEED"
git add "$SEED"
dvc exp run --quiet --name come-back -S skill.seed=$SEED -S epochs=1 -S batch_size=8 $LIMITS
echo "Taken out: $LINE"
python -m skilltrail audit --text "$LINE" || echo "Nobody proposed it again."
