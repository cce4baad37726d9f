"""Run every comparison and write `results.md`: `python -m benchmarks [--quick] [NAME ...]`."""

import argparse
import importlib
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

NAMES = (
    "fit",
    "checks",
    "predict",
    "tables",
    "fused",
    "sparse",
    "average",
    "averaging",
    "cold_start",
    "nuts",
    "accelerator",
    "correlated",
    "growth",
    "beyond",
    "measurement",
    "quality",
    "cost",
    "order",
    "wild",
    "naming",
    "groups",
    "wide",
    "posteriordb",
    "export",
)
RESULTS, UNMET = (Path(__file__).parent / name for name in ("results.md", "unmet.md"))


def head() -> str:
    """Return the head of the page: the meaning of the ratios, and the machine that measured them."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "jax", "numpyro"))
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, {packages}"
    return (
        "# Ratios\n\nEach ratio is the peer's time over ours, medians of interleaved repetitions in one run; answers\n"
        "are compared before the clock starts. `python -m benchmarks` writes this file, a section at a time.\n\n"
        f"{machine}.\n"
    )


def write(name: str, section: str) -> None:
    """Put one section into the results, in place of an older one."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    parts = re.split(r"<!-- (\w+) -->\n", text)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True)) | {name: section}
    body = "".join(f"\n<!-- {n} -->\n{sections[n].strip()}\n" for n in NAMES if n in sections)
    RESULTS.write_text(f"{head()}{body}\n<!-- unmet -->\n{UNMET.read_text()}")


def main() -> None:
    """Run the comparisons named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all runs; writes nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no comparison is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in arguments.names or NAMES:
        print(name, flush=True)
        tables = importlib.import_module(f"benchmarks.{name}").run(arguments.quick)
        if tables and not arguments.quick:
            write(name, "\n".join(table.markdown() for table in tables))


if __name__ == "__main__":
    main()
