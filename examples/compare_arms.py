"""Does thiotepa change the rate of new bladder tumours? Two arms of a trial compared."""

import gp4c


def main() -> None:
    panel = gp4c.load_dataset("bladder")
    found = gp4c.compare(panel, by="treatment")
    print(found)

    print("\nMean number of new tumours, thiotepa relative to placebo, with a 95% band:")
    for month in (6.0, 12.0, 24.0, 36.0):
        low, high = found.ratio_band(month, curve="cumulative")
        ratio = found.ratio(month, curve="cumulative")
        print(f"  by month {month:2.0f}: {ratio:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
