# A SKILL.md of one's own, and an OpenAI-compatible server.
git init --quiet --initial-branch=main
skilltrail init --data prices.csv --skill SKILL.md --target "openai:m@$SERVER"
#> skill        skills/seeds/prices.md
skilltrail plan
#> steps, as if nothing were cached
dvc repro
skilltrail diff seed best
#> +- Give the price with its currency
skilltrail adopt SKILL.md --yes
grep currency SKILL.md
#> - Give the price with its currency, as in 12.50 EUR.
