"""Fit all panels of a folder by the code of one peer: ``python drive.py code.py folder panel``.

The code has ``fit(data, times)``, which returns a model and its curves at the times, and may have
``about(model, fresh)``: what the comparison asks of the model about fresh subjects.
"""

import resource
import runpy
import sys
import time
import warnings
from pathlib import Path

import pandas as pd


def peak_memory():
    """MB that this process has held at most: Linux says it by process, others by its family."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(code, folder, reads):
    own = runpy.run_path(code)
    warnings.simplefilter("ignore")  # after packages that set filters of their own
    times = pd.read_csv(folder / "times.csv")["t"].to_numpy()
    for path in sorted(folder.glob(f"{reads}*.csv")):
        number = path.stem.removeprefix(reads)
        data = pd.read_csv(path)
        began = time.process_time()
        model, curve = own["fit"](data, times)
        cpu = time.process_time() - began
        pd.DataFrame(curve).to_csv(folder / f"curve{number}.csv", index=False)
        found = {}
        if "about" in own:
            found = own["about"](model, pd.read_csv(folder / f"fresh{number}.csv"))
        if "expected" in found:
            expected = pd.DataFrame({"expected": found.pop("expected")})
            expected.to_csv(folder / f"expected{number}.csv", index=False)
        found |= {"cpu": cpu, "memory": peak_memory()}
        pd.DataFrame([found]).to_csv(folder / f"about{number}.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
