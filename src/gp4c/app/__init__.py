"""The page on screen: ``gp4c app``, for those who do not code."""
