package sched

import "math"

// law is how run times are taken to be distributed: log-normally, with the mean and the
// standard deviation that were seen. Seconds.
type law struct {
	mean, dev float64
	m, s      float64 // of the logarithm
}

func lawOf(mean, dev float64) law {
	mean = max(mean, 1e-3)
	dev = max(dev, mean/100) // all alike is too good to be true
	s2 := math.Log1p(dev * dev / mean / mean)
	return law{mean, dev, math.Log(mean) - s2/2, math.Sqrt(s2)}
}

func normal(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// exceeds is the chance that a job takes longer than x.
func (l law) exceeds(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return normal((l.m - math.Log(x)) / l.s)
}

// beyond is the mean of what a job takes longer than x.
func (l law) beyond(x float64) float64 {
	if x <= 0 {
		return l.mean - x
	}
	d := (l.m - math.Log(x)) / l.s
	return max(0, l.mean*normal(d+l.s)-x*normal(d))
}

// unheard is a chance below which the law says nothing of a job any more.
const unheard = 1e-6

// rest is the mean of what is left of a job that has run for so long. Of one that has run
// longer than the law knows of: as long again.
func (l law) rest(age float64) float64 {
	if p := l.exceeds(age); p > unheard {
		return l.beyond(age) / p
	}
	return age
}

// overBy is the chance that a job which has run for so long is over in x.
func (l law) overBy(age, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if p := l.exceeds(age); p > unheard {
		return 1 - min(1, l.exceeds(age+x)/p)
	}
	return 1 - math.Exp(-x/max(age, 1e-3))
}
