#!/bin/sh
# In CI: train within a budget, or evaluate; write a comment; fail below a threshold.
#   MODE       train (default), or evaluate: skills that exist, on the test split
#   SET        more params, as in "lr=8 target.budget.usd=2"
#   CALLS      how many calls of the target a training may take; empty: as params.yaml says
#   SKILLS     for evaluate: the skill to compare with, and the one it is about
#   MIN_GAIN   what the lower end of the gain's interval must be above; empty: no threshold
#   COMMENT    the file to write
set -eu
MODE=${MODE:-train} SKILLS=${SKILLS:-seed best} COMMENT=${COMMENT:-comment.md}
if [ -n "$(dvc remote list)" ]; then
  dvc pull --quiet || echo "the recorded calls of earlier runs could not be pulled" >&2
fi
case $MODE in
train)
  set --
  for ONE in ${SET:-} ${CALLS:+stop.calls=$CALLS}; do set -- "$@" -S "$ONE"; done
  dvc exp run "$@" >&2
  skilltrail verify --allow-absent anchored >&2
  skilltrail ci -o "$COMMENT" ${MIN_GAIN:+--min-gain "$MIN_GAIN"}
  ;;
evaluate)
  set --
  for ONE in $SKILLS; do set -- "$@" --skill "$ONE"; done
  dvc repro split >&2
  mkdir -p .skilltrail
  skilltrail evaluate "$@" --split test --json > .skilltrail/measured.json
  skilltrail ci --measured .skilltrail/measured.json -o "$COMMENT" \
    ${MIN_GAIN:+--min-gain "$MIN_GAIN"}
  ;;
*)
  echo "MODE is train or evaluate, found $MODE" >&2
  exit 2
  ;;
esac
