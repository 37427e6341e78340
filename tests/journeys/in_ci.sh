# Before those who merge: a budget, a threshold, a comment, a branch. In the workspace of own_csv.sh.
git add .
git commit --quiet -m "A skill workspace and its first run"
CALLS=200 SET="lr=1" MIN_GAIN=0 COMMENT=comment.md sh "$RECIPES/ci.sh"
grep passed comment.md
#> **passed**
MODE=evaluate SKILLS="seed best" MIN_GAIN=0.2 sh "$RECIPES/ci.sh"
if MIN_GAIN=1.5 MODE=evaluate sh "$RECIPES/ci.sh"; then exit 1; fi
#> is not above the threshold
skilltrail pr
#> git push origin skilltrail/
skilltrail note main "passed in CI" --tag baseline
skilltrail runs
#> baseline; passed in CI
