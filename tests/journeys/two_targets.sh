# One skill for two models, with a judge, by `dvc exp run`. In the workspace of own_csv.sh.
echo "The price with its currency is a 1, the bare number a 0." > rubric.md
sed -i "s|^targets: {}.*|targets:\n  big: {backend: openai, model: m, provider: lab, base_url: '$SERVER', weight: 2, floor: 0.7}\n  small: {backend: openai, model: plain, provider: lab, base_url: '$SERVER'}|" params.yaml
sed -i "/^judge:/,/^[a-z]*:$/{s|^  backend: none |  backend: openai |;s|^  rubric: data/none|  rubric: rubric.md|;s|^  model: [^ ]*|  model: judge|;s|^  provider: null|  provider: lab|;s|^  base_url: null|  base_url: $SERVER|}" params.yaml
sed -i "s|scorer: exact|scorer: judge|" params.yaml
skilltrail doctor
#> targets.big model
#> targets.small model
#> judge model
git add .
git commit --quiet -m "One skill for two models"
dvc exp run -S epochs=1
#> rejected
skilltrail log
#> small 1.000 →
dvc exp run -S epochs=1 -S gate.tolerance=1
#> accepted
skilltrail summary
#> selection, big
#> test, small
skilltrail verify
#> OK
