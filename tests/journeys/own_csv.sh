# A CSV of one's own, in an empty folder.
skilltrail init --data prices.csv --yes --target "openai:m@$SERVER" --optimizer "openai:m@$SERVER"
#> columns      question <- 'Question', answer <- 'Expected'
#> train 6, selection 6, test 6
#> smallest gain it could show
dvc repro
#> step 1 (epoch 1): accepted
skilltrail summary
#> gain (95 % interval)
#> +1.000
