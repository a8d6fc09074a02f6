package sim

import "time"

// size bounds what a world contains, and how close together things happen in it.
type size struct {
	minFaults, maxFaults int
	maxHosts, maxSlots   int // maxSlots is for each host
	minJobs, maxJobs     int
	hasThemes            bool             // in half of the worlds all jobs have options of one kind
	minHalt              int              // minimum number of results that halt the run
	lostAfter            time.Duration    // of hosts that are given up early
	oneLostEarlyIn       int              // one in so many hosts is given up early
	buffers              [2]time.Duration // of runs that buffer jobs on hosts
	faultGap             span             // between two faults
	maxDraws             int              // maximum number of faults that are drawn until one is possible
	maxMoments           int              // maximum number of moments until a fault (passMoment); 0: faults ignore them
	feedGap              span             // between two submissions
	restart              span             // between the death of a dispatcher and the start of the next
	takeover             span             // between the stop of a dispatcher and a takeover when it seems dead
	forcedTakeover       span             // the same, when a person does not wait
	hang                 span             // how long the run directory hangs
	split                span             // how long two dispatchers do not see each other
	secondStart          span             // until the second of them starts
	lasting              [4]span          // how long faults last
	runTimes             [3]time.Duration // the longest run times of most jobs, of some, and of a few
}

// span holds the bounds of a duration.
type span struct{ from, to time.Duration }

// ordinary is the size of most worlds.
var ordinary = &size{
	minFaults: 40, maxFaults: 60, maxHosts: 6, maxSlots: 4, minJobs: 30, maxJobs: 99, minHalt: 4, maxDraws: 1,
	lostAfter: 25 * time.Second, oneLostEarlyIn: 4,
	buffers:        [2]time.Duration{20 * time.Second, 100 * time.Second},
	faultGap:       span{500 * time.Millisecond, 18 * time.Second},
	feedGap:        span{time.Second, 12 * time.Second},
	restart:        span{time.Second, 90 * time.Second},
	takeover:       span{30 * time.Second, 35 * time.Second},
	forcedTakeover: span{time.Second, 30 * time.Second},
	hang:           span{time.Second, 40 * time.Second},
	split:          span{20 * time.Second, 3 * time.Minute},
	secondStart:    span{0, 20 * time.Second},
	lasting: [4]span{{100 * time.Millisecond, 10 * time.Second}, {10 * time.Second, 40 * time.Second},
		{40 * time.Second, 80 * time.Second}, {time.Minute, 4 * time.Minute}},
	runTimes: [3]time.Duration{3 * time.Second, 30 * time.Second, 4 * time.Minute},
}

// small is the size of small worlds. Most defects show with few jobs on few hosts, if faults happen at
// the wrong moments. A small world takes a twentieth of the time of an ordinary one.
var small = &size{
	minFaults: 3, maxFaults: 12, maxHosts: 3, maxSlots: 3, minJobs: 1, maxJobs: 4, minHalt: 1, maxDraws: 4,
	maxMoments: 6, hasThemes: true,
	lostAfter: 12 * time.Second, oneLostEarlyIn: 2,
	buffers:        [2]time.Duration{5 * time.Second, 20 * time.Second},
	faultGap:       span{0, 8 * time.Second},
	feedGap:        span{0, 10 * time.Second},
	restart:        span{0, 15 * time.Second},
	takeover:       span{6 * time.Second, 12 * time.Second},
	forcedTakeover: span{0, 6 * time.Second},
	hang:           span{0, 15 * time.Second},
	split:          span{5 * time.Second, time.Minute},
	secondStart:    span{0, 5 * time.Second},
	lasting: [4]span{{0, 2 * time.Second}, {2 * time.Second, 12 * time.Second},
		{12 * time.Second, 30 * time.Second}, {30 * time.Second, 80 * time.Second}},
	runTimes: [3]time.Duration{3 * time.Second, 15 * time.Second, 40 * time.Second},
}

// allSmall makes every world small.
var allSmall bool

// within chooses a duration.
func (w *World) within(s span) time.Duration { return w.between(s.from, s.to) }

// passMoment counts a moment: a record of a dispatcher, its death or takeover, or the start or end of a
// job. A fault that waits for the moment happens while messages about it are in transit.
func (w *World) passMoment() {
	if w.momentsLeft == 0 {
		return
	}
	w.momentsLeft--
	if w.momentsLeft == 0 {
		w.after(w.between(0, 50*time.Millisecond), w.injectNext)
	}
}
