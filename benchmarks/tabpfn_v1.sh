#!/usr/bin/env bash
# Makes the environment in which `python -m benchmarks quality` asks TabPFN v1: `bash benchmarks/tabpfn_v1.sh [PYTHON]`,
# with Python 3.11 or older; some 5 GB in build/tabpfn. The weights of the network are in the source archive of release 0.1.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/tabpfn
"${1:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install -q torch==2.2.2 "numpy<2" scikit-learn==1.5.2 tabpfn==0.1.11 hatchling==1.18.0
archive=$(mktemp -d)
trap 'rm -rf "$archive"' EXIT
"$folder/bin/pip" download -q --no-deps --no-build-isolation --no-binary :all: -d "$archive" tabpfn==0.1 # by this hatchling
tar -xzf "$archive"/tabpfn-0.1.tar.gz -C "$archive"
package=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tabpfn
mkdir -p "$package/models_diff"
find "$archive" -name prior_diff_real_checkpoint_n_0_epoch_42.cpkt -exec cp {} "$package/models_diff/" \;
"$folder/bin/python" - <<'CODE'
import numpy as np
from tabpfn import TabPFNClassifier

x = np.random.default_rng(0).normal(size=(60, 2))
y = (x[:, 0] > 0).astype(int)
right = (TabPFNClassifier(device="cpu").fit(x[:40], y[:40]).predict(x[40:]) == y[40:]).mean()
assert right > 0.8, right
CODE
