# Two people, one remote, a question each. In the workspace of own_csv.sh, which is Anna's.
git init --quiet --bare --initial-branch=main "$PLACE/hub.git"
git remote add origin "$PLACE/hub.git"
dvc remote add --default lab "$PLACE/lab"
git add .
git commit --quiet -m "A skill workspace and its first run"
git push --quiet origin main
dvc push
git clone --quiet "$PLACE/hub.git" "$PLACE/bob"
git switch --quiet -c lr-1
sed -i 's/^lr: [0-9]*/lr: 1/' params.yaml
dvc repro
git add .
git commit --quiet -m "Train with lr 1"
git push --quiet origin lr-1
dvc push
skilltrail share origin --as anna
cd "$PLACE/bob"
dvc pull
git switch --quiet -c lr-8
sed -i 's/^lr: [0-9]*/lr: 8/' params.yaml
dvc repro
git add .
git commit --quiet -m "Train with lr 8"
git push --quiet origin lr-8
dvc push
skilltrail share origin --as bob
skilltrail fetch
#> anna/lr-1
skilltrail runs
skilltrail compare --group-by lr
skilltrail diff lr-8:best anna/lr-1:best
#> the texts are the same
