package sched

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/jobs"
)

// lotteryLaunches launches jobs of queues with these shares one after the other on one slot, and
// returns the queue of each launch. Each queue always has a job, except that those without a share
// have none.
func lotteryLaunches(t *testing.T, seed uint64, n int, shares ...int) (order []int) {
	t.Helper()
	s := connectedStage(t, Config{Seed: seed, QueuePolicy: fairshare.Lottery}, testHost("a", 1))
	var options []*jobs.Options
	for q, share := range shares {
		if share > 0 {
			o := &jobs.Options{Queue: fmt.Sprint("q", q), Share: share}
			options = append(options, repeatOptions(n, o)...)
		}
	}
	s.submit(true, options...)
	pending := launchItems(s.commands, "a") // some wait in the buffer of the host
	for ; len(order) < n; pending = pending[1:] {
		id := pending[0].Attempt
		var q int
		if _, err := fmt.Sscanf(s.job(id.Job).Spec.Queue, "q%d", &q); err != nil {
			t.Fatal(err)
		}
		order = append(order, q)
		pending = append(pending, launchItems(s.ended("a", id.String(), succeeded), "a")...)
	}
	return order
}

// TestLotteryFollowsShares checks that queues win lots in the ratio of their shares, that the same
// seed gives the same order, and that another seed gives another one.
func TestLotteryFollowsShares(t *testing.T) {
	const n = 600
	for _, shares := range [][]int{{1, 1}, {1, 2}, {1, 2, 5}, {3, 0, 1}, {1000, 1}} {
		t.Run(fmt.Sprint(shares), func(t *testing.T) {
			order := lotteryLaunches(t, 7, n, shares...)
			sum := 0
			for _, share := range shares {
				sum += share
			}
			for q, share := range shares {
				won := 0
				for _, w := range order {
					if w == q {
						won++
					}
				}
				p := float64(share) / float64(sum)
				if dev := math.Abs(float64(won) - n*p); dev > 1+4*math.Sqrt(n*p*(1-p)) { // 4 standard deviations
					t.Errorf("queue %d won %d of %d, want about %.0f", q, won, n, n*p)
				}
			}
			if again := lotteryLaunches(t, 7, n, shares...); !slices.Equal(order, again) {
				t.Error("the same seed gives another order")
			}
			if other := lotteryLaunches(t, 8, n, shares...); shares[0] < 1000 && slices.Equal(order, other) {
				t.Error("another seed gives the same order")
			}
		})
	}
}

// TestLotteryKeepsPriorities checks that a queue with a smaller priority goes first, whatever the
// lots say, and that jobs of a queue keep their order.
func TestLotteryKeepsPriorities(t *testing.T) {
	s := connectedStage(t, Config{QueuePolicy: fairshare.Lottery}, testHost("a", 1))
	first := &jobs.Options{Queue: "b", QueuePriority: new(-1)}
	many := &jobs.Options{Queue: "a", Share: 1000}
	s.submit(true, many, many, first, first)
	order := ""
	for pending := launchItems(s.commands, "a"); len(pending) > 0; pending = pending[1:] {
		id := pending[0].Attempt.String()
		order += id + " "
		pending = append(pending, launchItems(s.ended("a", id, succeeded), "a")...)
	}
	want(t, "order", order, "3.1 4.1 1.1 2.1 ")
}
