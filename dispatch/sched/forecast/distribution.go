package forecast

import "math"

// Distribution is a log-normal distribution of run times, in seconds, with the observed mean and
// standard deviation.
type Distribution struct {
	Mean, Dev       float64
	logMean, logDev float64 // of the logarithm
}

// NewDistribution returns a distribution of run times with a mean and a standard deviation, in seconds.
func NewDistribution(mean, dev float64) Distribution {
	mean = max(mean, 1e-3)
	dev = max(dev, mean/100) // a deviation of zero would be overconfident
	s2 := math.Log1p(dev * dev / mean / mean)
	return Distribution{mean, dev, math.Log(mean) - s2/2, math.Sqrt(s2)}
}

func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// survival is the probability that a job takes longer than x.
func (l Distribution) survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return normalCDF((l.logMean - math.Log(x)) / l.logDev)
}

// expectedExcess is the mean of max(0, run time - x).
func (l Distribution) expectedExcess(x float64) float64 {
	if x <= 0 {
		return l.Mean - x
	}
	d := (l.logMean - math.Log(x)) / l.logDev
	return max(0, l.Mean*normalCDF(d+l.logDev)-x*normalCDF(d))
}

// minSurvival is the probability below which the distribution does not describe a job any more.
const minSurvival = 1e-6

// ExpectedRemaining returns the mean remaining run time of a job of that age. A job that is too old
// for the distribution is assumed to take as long again.
func (l Distribution) ExpectedRemaining(age float64) float64 {
	if p := l.survival(age); p > minSurvival {
		return l.expectedExcess(age) / p
	}
	return age
}

// completionProbability is the probability that a job of that age ends within x seconds.
func (l Distribution) completionProbability(age, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if p := l.survival(age); p > minSurvival {
		return 1 - min(1, l.survival(age+x)/p)
	}
	return 1 - math.Exp(-x/max(age, 1e-3))
}

// Estimated is the distribution of run times for which only the user's estimate is known.
func Estimated(mean float64) Distribution { return NewDistribution(mean, mean/2) }

// minProgressShare is the smallest share of the work from which the remaining time is estimated.
const minProgressShare = 0.01

// OfProgress returns the distribution of the remaining run time of a job that has run for age
// seconds and had done a share of its work at doneAt. It assumes that the rest of the work takes as
// long per part as the share did. The distribution is wider for a smaller share. An overdue job is
// assumed to take as long again. ok is false if the share is too small.
func OfProgress(share, doneAt, age float64) (d Distribution, ok bool) {
	if share < minProgressShare {
		return Distribution{}, false
	}
	whole := doneAt / share
	rest := whole - age
	mean := max(rest, -rest, whole/20)
	doubt := 0.2 + 0.8*square(1-share) // relative to the whole run time
	return NewDistribution(mean, mean*doubt+whole/50), true
}
