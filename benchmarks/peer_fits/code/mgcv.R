# A negative-binomial additive model of counts at the middle of their intervals.
library(mgcv)

fit <- function(data, times) {
  data$mid <- (data$start + data$stop) / 2
  data$length <- data$stop - data$start
  data$id <- factor(data$subject)
  model <- gam(count ~ s(mid, k = 20) + s(id, bs = "re") + offset(log(length)), data = data,
               family = nb(), method = "REML")
  new <- data.frame(mid = times, id = data$id[1], length = 1)
  p <- predict(model, new, se.fit = TRUE, exclude = "s(id)", unconditional = TRUE)
  list(model = model, curve = data.frame(
    rate = exp(p$fit),
    rate_low = exp(p$fit - 1.96 * p$se.fit),
    rate_high = exp(p$fit + 1.96 * p$se.fit)))
}

# -- for the comparison --
about <- function(model, fresh) {
  new <- data.frame(mid = (fresh$start + fresh$stop) / 2, length = fresh$stop - fresh$start,
                    id = model$model$id[1])
  invisible(capture.output(s <- gam.vcomp(model, rescale = FALSE)))
  s <- if (is.list(s)) s$vc else s
  list(expected = exp(predict(model, new, exclude = "s(id)")),
       family = "nb2", dispersion = 1 / model$family$getTheta(TRUE),
       spread = if (is.matrix(s)) s["s(id)", 1] else s[["s(id)"]])
}
