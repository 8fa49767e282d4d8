"""GP4C, GP4CW and GP3: they assemble data, model and inference."""
