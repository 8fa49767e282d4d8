"""What users do with fitted models: compare, forecast, validate, diagnose."""
