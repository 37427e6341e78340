# The run in a second clone, without a call. In the workspace of own_csv.sh.
git init --quiet --bare --initial-branch=main "$PLACE/hub.git"
git remote add origin "$PLACE/hub.git"
dvc remote add --default lab "$PLACE/lab"
git add .
git commit --quiet -m "A skill workspace and its first run"
git push --quiet origin main
dvc push
skilltrail share origin --as anna
#> new
git clone --quiet "$PLACE/hub.git" "$PLACE/second"
cd "$PLACE/second"
dvc pull
skilltrail fetch
dvc repro
#> Data and pipelines are up to date.
dvc repro --force
skilltrail summary
#> calls made: 0
skilltrail verify
#> anchored
