# Why is this line here? In the workspace of own_csv.sh.
skilltrail blame
#> Give the price with its currency
skilltrail audit --text "currency"
#> accepted
skilltrail audit --version 1
#> 0.000 → 1.000
git log --oneline evolution/main
#> skill: v1
