# A scorer of one's own, in Python.
cat > train.py <<'PY'
import os
from skilltrail import optimize


def metric(item, reply):
    right = reply == item["Expected"]
    return 1.0 if right else (0.0, "the currency is missing")


result = optimize(
    items="prices.csv",
    metric=metric,
    skill="# Prices\n",
    target={"backend": "openai", "model": "m", "provider": "lab", "base_url": os.environ["SERVER"]},
    epochs=1,
    workspace="prices",
)
print(result)
PY
python train.py
#> gain +1.000
cd prices
skilltrail audit --text currency
#> Give the price with its currency
