"""How many failures next quarter? A fleet of pumps, inspected at irregular times."""

import gp4c


def main() -> None:
    # sixty pumps that wear out, some worse than others, inspected six times in two years
    fleet, _ = gp4c.simulate_panel(
        ([0, 24], [0.10, 0.22]), window=(0, 24), n_subjects=60, n_intervals=6, frailty=2.0,
        time_unit="months", random_state=7,
    )  # fmt: skip
    model = gp4c.GP4C().fit(fleet)
    print(model.forecast(24, 27, subjects="all"))

    print("\nThe same if the rate stays where it is:")
    print(model.forecast(24, 27, subjects="all", beyond="hold"))

    print("\nThe three pumps to expect most of:")
    each = model.forecast(24, 27, subjects=list(fleet.subjects)).to_frame()
    print(
        each.nlargest(3, "mean")[["subject", "mean", "low", "high"]].round(2).to_string(index=False)
    )


if __name__ == "__main__":
    main()
