"""Terms of the log density: of one point, and of factors that change within intervals."""
