"""What multiplies the rate and changes within an interval: a trend, a season, effects over time."""

from gp4c.model.modulation.modulator import Modulation as Modulation
from gp4c.model.modulation.modulator import Modulator as Modulator
from gp4c.model.modulation.over_time import OverTime as OverTime
from gp4c.model.modulation.rate_trends import TRENDS as TRENDS
from gp4c.model.modulation.rate_trends import Trend as Trend
from gp4c.model.modulation.seasons import Season as Season
