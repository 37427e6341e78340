"""The `split` stage: put the items into train, selection and test, and freeze them.

in    the items that `data` in params.yaml names, or data/<env>/
out   data/splits/{train,selection,test}.jsonl and manifest.json
"""

from __future__ import annotations

from skilltrail.data.freeze import split
from skilltrail.runtime.command import aside, run_stage
from skilltrail.runtime.console import say
from skilltrail.runtime.preflight import refuse_left_behind
from skilltrail.runtime.template import require_library
from skilltrail.runtime.workspace import environment_of, load_params
from skilltrail.store.place import find_place


async def main() -> None:
    """Split the items of the project that the stage runs in."""
    place = find_place()
    require_library(place.workspace)
    params = load_params(place.workspace)
    refuse_left_behind(place, params)
    env = environment_of(params)
    await aside(lambda: split(params, env, place.workspace, say))


if __name__ == "__main__":
    run_stage(main)
