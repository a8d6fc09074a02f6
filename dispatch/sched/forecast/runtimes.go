package forecast

import "math"

// RunTimes holds how long the jobs of a queue take, in seconds: the run times of the jobs that
// succeeded, and the ages of those that run. The time until a failure does not show how long a job
// takes.
type RunTimes struct {
	N                    int     // number of jobs that succeeded
	mean, sumSquaredDevs float64 // sum of the squared deviations from the mean (Welford)
	running              censored
	runningOn            map[string]censored // by host
}

// Add adds the run time of a job that succeeded.
func (s *RunTimes) Add(x float64) {
	s.N++
	d := x - s.mean
	s.mean += d / float64(s.N)
	s.sumSquaredDevs += d * (x - s.mean)
}

// censored holds jobs that still run: each will take at least its age. A job that is younger
// than the mean has no effect yet. One that is older counts with its age, and never shortens the
// mean. The sums are of the deviations from the mean and of their squares, as of the last check.
type censored struct {
	numOlder        int
	sum, sumSquares float64
}

func (c *censored) add(o censored) {
	c.numOlder += o.numOlder
	c.sum += o.sum
	c.sumSquares += o.sumSquares
}

// MinFinished is how many jobs of a queue must have succeeded before their run times are used.
const MinFinished = 5

// ForgetRunning forgets the jobs that run.
func (s *RunTimes) ForgetRunning() {
	s.running = censored{}
	clear(s.runningOn)
}

// AddRunning adds a job that runs on a host, of that age.
func (s *RunTimes) AddRunning(host string, age float64) {
	d := age - s.mean
	if s.N == 0 || d <= 0 {
		return
	}
	if s.runningOn == nil {
		s.runningOn = map[string]censored{}
	}
	job, there := censored{1, d, d * d}, s.runningOn[host]
	there.add(job)
	s.running.add(job)
	s.runningOn[host] = there
}

// Moments returns the mean and standard deviation of finished and censored run times. ok is false if too few
// jobs have finished.
func (s *RunTimes) Moments() (mean, dev float64, ok bool) { return s.momentsWithout(censored{}) }

// momentsWithout is Moments without some of the jobs that run.
func (s *RunTimes) momentsWithout(some censored) (mean, dev float64, ok bool) {
	if s.N < MinFinished {
		return 0, 0, false
	}
	k := s.running.numOlder - some.numOlder
	if k <= 0 {
		return s.mean, math.Sqrt(s.sumSquaredDevs / float64(s.N-1)), true
	}
	d1, d2 := max(0, s.running.sum-some.sum), max(0, s.running.sumSquares-some.sumSquares)
	n := float64(s.N + k)
	return s.mean + d1/n, math.Sqrt(max(0, s.sumSquaredDevs+d2-d1*d1/n) / (n - 1)), true
}

// Estimate returns an upper estimate of the run time of a job that runs on a host and has that age: the mean
// and two standard deviations of the others. A host is compared with the other hosts, so the jobs that run on
// it are left out, and slow ones do not hide each other. If isOnly is set, jobs have succeeded on no other
// host. Only the job itself is left out then.
func (s *RunTimes) Estimate(host string, isOnly bool, age float64) (seconds float64, ok bool) {
	others := s.runningOn[host]
	if isOnly {
		others = censored{}
		if d := age - s.mean; d > 0 {
			others = censored{1, d, d * d}
		}
	}
	mean, dev, ok := s.momentsWithout(others)
	return mean + 2*dev, ok
}

// Pooled is the distribution of the run times of several queues together. ok is false if too little
// is known.
func Pooled(queues []*RunTimes) (d Distribution, ok bool) {
	var sum, squares float64
	n := 0
	for _, s := range queues {
		if mean, dev, ok := s.Moments(); ok {
			k := float64(s.N)
			n += s.N
			sum += k * mean
			squares += k * (mean*mean + dev*dev)
		}
	}
	if n == 0 {
		return NewDistribution(1, 1), false
	}
	mean := sum / float64(n)
	return NewDistribution(mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))), true
}

// RecentMeans holds moving averages of run times, in seconds, of all jobs and of those that
// succeeded. Each is 0 until such a job has ended.
type RecentMeans struct {
	N, numSucceeded int // N is the number of jobs, at most maxRecent
	All, Succeeded  float64
}

// maxRecent is the number of jobs over which RecentMeans averages.
const maxRecent = 16

// Add adds the run time of a job, and whether it succeeded.
func (m *RecentMeans) Add(x float64, ok bool) {
	m.N = min(m.N+1, maxRecent)
	m.All += (x - m.All) / float64(m.N)
	if ok {
		m.numSucceeded = min(m.numSucceeded+1, maxRecent)
		m.Succeeded += (x - m.Succeeded) / float64(m.numSucceeded)
	}
}
