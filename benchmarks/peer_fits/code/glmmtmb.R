# A mixed model of counts at the middle of their intervals, with a natural spline chosen by AIC.
library(glmmTMB)
library(splines)

fit <- function(data, times) {
  data$mid <- (data$start + data$stop) / 2
  data$length <- data$stop - data$start
  data$id <- factor(data$subject)
  with_knots <- function(k, family) tryCatch(glmmTMB(
    as.formula(paste0("count ~ ns(mid, ", k, ") + (1 | id) + offset(log(length))")),
    data = data, family = family), error = function(problem) NULL)
  fitted <- function(family) Filter(function(fit) !is.null(fit) && !is.na(AIC(fit)),
                                    lapply(c(5, 10, 15, 20), with_knots, family = family))
  fits <- fitted(nbinom1())
  # Counts that vary no more than Poisson's put the dispersion at its limit: no fit has an AIC.
  if (length(fits) == 0) fits <- fitted(poisson())
  model <- fits[[which.min(sapply(fits, AIC))]]
  new <- data.frame(mid = times, length = 1, id = NA)
  p <- predict(model, new, se.fit = TRUE, re.form = NA)
  list(model = model, curve = data.frame(
    rate = exp(p$fit),
    rate_low = exp(p$fit - 1.96 * p$se.fit),
    rate_high = exp(p$fit + 1.96 * p$se.fit)))
}

# -- for the comparison --
about <- function(model, fresh) {
  new <- data.frame(mid = (fresh$start + fresh$stop) / 2, length = fresh$stop - fresh$start,
                    id = NA)
  list(expected = exp(predict(model, new, re.form = NA)),
       family = if (family(model)$family == "poisson") "poisson" else "nb1",
       dispersion = sigma(model), spread = attr(VarCorr(model)$cond$id, "stddev")[[1]])
}
