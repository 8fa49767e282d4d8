"""Run the study: ``python -m benchmarks.calibration --sets 200 --jobs 2``."""

from benchmarks.calibration.run import main

if __name__ == "__main__":
    main()
