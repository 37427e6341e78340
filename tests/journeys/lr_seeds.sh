# Two learning rates times two seeds. In the workspace of own_csv.sh.
git add .
git commit --quiet -m "A skill workspace and its first run"
dvc exp run --queue -S lr=1,4 -S seed=1,2
dvc exp run --run-all --jobs 2
skilltrail compare --group-by lr
#> 1, 2
#> selection gain
dvc exp show --no-pager --drop '.*' --keep 'Experiment|^lr$|^seed$|test.best$'
#> test.best
