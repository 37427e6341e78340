#!/bin/sh
# The four schedules with one seed: four experiments, one table, four curves in one picture.
# A small lr, so that the edits do not all come in one step.
set -eu
LIMITS=${LIMITS:--S data.limit.train=32 -S data.limit.selection=20 -S data.limit.test=20}
for SCHEDULE in constant linear cosine autonomous; do
  dvc exp run --quiet --name "lr-$SCHEDULE" -S lr_schedule=$SCHEDULE -S lr=2 -S epochs=2 \
    -S batch_size=8 -S patience=0 $LIMITS
done
dvc exp show --md --drop '.*' \
  --keep 'Experiment|lr_schedule|selection.best$|test.best$|accepted'
python -m skilltrail runs
dvc plots diff --out plots lr-constant lr-linear lr-cosine lr-autonomous
python recipes/draw.py plots/schedules.svg lr-constant lr-linear lr-cosine lr-autonomous
