# Fit all panels of a folder by the code of one peer: Rscript drive.R code.R folder panel
# The code has fit(data, times), which returns a model and its curves at the times, and
# about(model, fresh): what the comparison asks of the model about fresh subjects.
given <- commandArgs(TRUE)
folder <- given[2]
suppressMessages(source(given[1]))

peak_memory <- function() {
  if (!file.exists("/proc/self/status")) return(NA)
  line <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
place <- function(name, number) file.path(folder, paste0(name, number, ".csv"))

times <- read.csv(file.path(folder, "times.csv"))$t
for (path in list.files(folder, paste0("^", given[3], ".*csv$"), full.names = TRUE)) {
  number <- gsub("[^0-9]", "", basename(path))
  data <- read.csv(path)
  began <- proc.time()
  found <- suppressWarnings(fit(data, times))
  used <- proc.time() - began
  write.csv(found$curve, place("curve", number), row.names = FALSE)
  said <- about(found$model, read.csv(place("fresh", number)))
  write.csv(data.frame(expected = said$expected), place("expected", number), row.names = FALSE)
  said$expected <- NULL
  said$cpu <- used[[1]] + used[[2]]
  said$memory <- peak_memory()
  write.csv(as.data.frame(said), place("about", number), row.names = FALSE)
}
