"""The paper, reproduced: its tables and figures beside its own numbers.

``gp4c reproduce`` is thin over this folder. `studies` computes single trials, `store` keeps them,
`running` runs what is missing through joblib, and one module per table or figure turns the
records into a section of the page. The paper is Ding, Lee, Sato and Sugiyama, "Variational
inference for Gaussian process with panel count data", UAI 2018.
"""
