"""Several basis intensities, of which every subject has a combination (docs/maths_mixture.md)."""
