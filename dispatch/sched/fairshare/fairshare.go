// Package fairshare determines which queue is next among those of the same priority: the one with
// the smallest relative usage, or one chosen by lot.
//
// The relative usage is the used slot time, averaged with a half-life, divided by the queue's weight.
// An attempt is charged its CPU time, but at least the time of its slots. Attempts that run or were
// sent to hosts are charged ahead, so that slots that become free together are shared immediately.
// An idle queue saves for later, but not forever, because the usage of the others decays.
//
// The package knows neither jobs nor hosts. sched/charge.go reports what attempts use.
package fairshare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Policy is how the next queue is chosen among those of the same priority.
type Policy uint8

// The policies.
const (
	Usage   Policy = iota // the one with the smallest relative usage
	Lottery               // by lot, with as many tickets as its weight
)

var policyNames = [...]string{"share", "lottery"}

// String returns the name of the policy.
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy parses the name of a policy.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("unknown policy %q (use share or lottery)", name)
}

// defaultChargeAhead is the number of seconds for which running attempts are charged ahead while no
// run time is known.
const defaultChargeAhead = 1

// Shares holds the shares of all queues.
type Shares struct {
	halfLife    time.Duration
	tickets     *rand.Rand // draws of the lottery; nil: queues have usages
	queues      []*Queue
	chargeAhead float64 // seconds for which running attempts are charged ahead
}

// ticketStream is the stream of the run's seed from which tickets are drawn. The jitter has another.
const ticketStream = 0x7469636b

// New returns the shares of no queues.
func New(p Policy, halfLife time.Duration, seed uint64) *Shares {
	s := &Shares{halfLife: halfLife}
	if p == Lottery {
		s.tickets = rand.New(rand.NewPCG(seed, ticketStream))
	}
	return s
}

// Queue is the share of a queue. Times are as in sched.Time.Mono.
type Queue struct {
	Name     string
	Weight   float64 // at least 1
	Priority int     // a smaller one goes first, whatever the shares are

	// Inputs of Update.
	MeanRunTime float64 // mean run time of its jobs in seconds; 0: not known
	HasWaiting  bool    // jobs of it wait

	shares       *Shares
	usage        float64 // slot seconds, or CPU seconds if those are more, as of usageAt
	usageAt      time.Duration
	runningSlots int // slots of attempts known to run
	sentSlots    int // slots of open attempts not known to have started

	sentCharge    float64 // slot seconds that an attempt in sentSlots is charged ahead
	relativeUsage float64 // as of the last Update; with a lottery, the result of its draw
}

// Add adds a queue.
func (s *Shares) Add(name string, now time.Duration) *Queue {
	q := &Queue{Name: name, Weight: 1, shares: s, usageAt: now}
	s.queues = append(s.queues, q)
	return q
}

// decay updates usage to the current time.
func (q *Queue) decay(now time.Duration) {
	dt := now - q.usageAt
	if dt <= 0 {
		return
	}
	q.usageAt = now
	if q.usage == 0 && q.runningSlots == 0 {
		return
	}
	half := q.shares.halfLife.Seconds()
	kept := math.Exp2(-dt.Seconds() / half)
	q.usage = q.usage*kept + float64(q.runningSlots)*(1-kept)*half/math.Ln2
}

// Usage returns the current usage in seconds.
func (q *Queue) Usage(now time.Duration) float64 {
	q.decay(now)
	return q.usage
}

// Charge charges seconds, or gives them back if they are negative.
func (q *Queue) Charge(now time.Duration, seconds float64) {
	q.usage = max(0, q.Usage(now)+seconds)
}

// Send charges an attempt that was sent to a host.
func (q *Queue) Send(slots int) {
	q.sentSlots += slots
	if q.shares.tickets != nil {
		q.shares.drawTickets()
	} else {
		q.updateRelativeUsage()
	}
}

// Start charges an attempt as running. It has run for ran already.
func (q *Queue) Start(now time.Duration, slots int, ran time.Duration) {
	q.Charge(now, float64(slots)*ran.Seconds())
	q.sentSlots -= slots
	q.runningSlots += slots
}

// End stops charging an attempt, which had started or not.
func (q *Queue) End(now time.Duration, slots int, started bool) {
	q.decay(now)
	if started {
		q.runningSlots -= slots
	} else {
		q.sentSlots -= slots
	}
}

// Cost returns what an attempt with this run time and CPU time is charged, in seconds.
func Cost(slots int, took, cpu time.Duration) float64 {
	return max(float64(slots)*took.Seconds(), cpu.Seconds())
}

// Learn charges an attempt that has ended so long ago. cost is its Cost.
func (q *Queue) Learn(cost float64, took, ago time.Duration) {
	half := q.shares.halfLife.Seconds()
	rate := cost / took.Seconds()
	q.usage += rate * math.Exp2(-ago.Seconds()/half) * (1 - math.Exp2(-took.Seconds()/half)) * half / math.Ln2
}

// Update computes the relative usages. All queues are charged ahead for the same time, which is that
// of the longest jobs. A queue that has one slot too many or too few is thus corrected by one slot,
// not by all slots at once.
func (s *Shares) Update(now time.Duration) {
	if s.tickets != nil {
		s.drawTickets()
		return
	}
	s.chargeAhead = 0
	sum, known := 0.0, 0
	for _, q := range s.queues {
		q.decay(now)
		if q.MeanRunTime > 0 && (q.runningSlots+q.sentSlots > 0 || q.HasWaiting) {
			s.chargeAhead = max(s.chargeAhead, q.MeanRunTime)
			sum, known = sum+q.MeanRunTime, known+1
		}
	}
	if known == 0 {
		s.chargeAhead, sum, known = defaultChargeAhead, defaultChargeAhead, 1
	}
	s.chargeAhead = min(s.chargeAhead, s.halfLife.Seconds())
	for _, q := range s.queues {
		q.sentCharge = q.MeanRunTime
		if q.MeanRunTime == 0 { // like the other queues
			q.sentCharge = sum / float64(known)
		}
		q.updateRelativeUsage()
	}
}

func (q *Queue) updateRelativeUsage() {
	ahead := float64(q.runningSlots)*q.shares.chargeAhead + float64(q.sentSlots)*q.sentCharge
	q.relativeUsage = (q.usage + ahead) / q.Weight
}

// drawTickets draws lots for the next launch, and stores the result as the relative usage. The
// smallest of exponentially distributed numbers with the rates w1, w2 … is the first with the
// probability w1/(w1+w2+…), and the others are ordered in the same way. So if a queue has no job that
// a host can take now, its turn passes to another one by lot, too.
func (s *Shares) drawTickets() {
	for _, q := range s.queues {
		q.relativeUsage = s.tickets.ExpFloat64() / q.Weight
	}
}

// Compare returns which of two queues goes first: -1, 0, or 1.
func (q *Queue) Compare(o *Queue) int {
	return cmp.Or(cmp.Compare(q.Priority, o.Priority), cmp.Compare(q.relativeUsage, o.relativeUsage))
}
