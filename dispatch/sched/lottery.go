package sched

import "fmt"

// QueuePolicy is how the next queue is chosen among those of the same priority.
type QueuePolicy uint8

// The policies.
const (
	FairShare QueuePolicy = iota // the one with the smallest relative usage (fairshare.go)
	Lottery                      // by lot, with as many tickets as its share
)

var queuePolicyNames = [...]string{"share", "lottery"}

// String returns the name of the policy.
func (p QueuePolicy) String() string { return queuePolicyNames[p] }

// ParseQueuePolicy parses the name of a policy.
func ParseQueuePolicy(name string) (QueuePolicy, error) {
	for i, n := range queuePolicyNames {
		if n == name {
			return QueuePolicy(i), nil
		}
	}
	return 0, fmt.Errorf("unknown policy %q (use share or lottery)", name)
}

// ticketStream is the stream of the run's seed from which tickets are drawn. The jitter has another.
const ticketStream = 0x7469636b

// drawTickets draws lots for the next launch, and stores the result as the relative usage. The
// smallest of exponentially distributed numbers with the rates w1, w2 … is the first with the
// probability w1/(w1+w2+…), and the others are ordered in the same way. So if a queue has no job that
// a host can take now, its turn passes to another one by lot, too.
func (c *Core) drawTickets() {
	for _, st := range c.queues {
		st.share.relativeUsage = c.tickets.ExpFloat64() / st.share.weight
	}
}
