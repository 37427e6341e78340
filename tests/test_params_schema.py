"""`schemas/params.schema.json` says what the knobs say.

To renew it: `PYTHONPATH=. python tests/test_params_schema.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError
from ruamel.yaml import YAML

from skilltrail.params.schema import params_schema

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "schemas" / "params.schema.json"


def text() -> str:
    return json.dumps(params_schema(), indent=2, ensure_ascii=False) + "\n"


def test_the_schema_on_file_is_the_one_of_the_knobs() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), (
        "PYTHONPATH=. python tests/test_params_schema.py"
    )


def test_the_schema_is_a_schema_and_the_shipped_params_follow_it() -> None:
    Draft202012Validator.check_schema(params_schema())
    params = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    Draft202012Validator(params_schema()).validate(params)


@pytest.mark.parametrize(
    "params",
    [{"lr": 0}, {"lr": "4"}, {"use_gate": "false"}, {"gate": {"mtric": "hard"}}, {"epoch": 1}],
)
def test_the_schema_refuses_what_the_reader_refuses(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(params_schema()).validate(params)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
