package hosts

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// maxLookInterval is the longest time between two looks that is charged.
	maxLookInterval = 30 * time.Second
	// maxUsers bounds SlotUsage.Users.
	maxUsers = 64
	// usageUnit is the unit to which usages are rounded down.
	usageUnit = 0.01
)

// SlotUsage is how much the users of a host have used it, as one of them knows it: the number of slots
// that each of them held when that user looked, averaged with a half-life. It approaches n for a
// user who holds n slots all the time. What that user has not seen counts as unused.
type SlotUsage struct {
	At    time.Duration // boot clock of the last look
	Users []UserUsage   // at most maxUsers, those with the highest usages
}

// UserUsage is the usage of a user.
type UserUsage struct {
	User int // uid
	Mean float64
}

// Observe records a look at the claims of a host with this number of slots. own is our user, who is
// never dropped.
func (u *SlotUsage) Observe(now, halfLife time.Duration, slots, own int, claims []SlotClaim) {
	dt := now - u.At
	if dt < 0 { // another clock
		u.Users, dt = nil, 0
	}
	kept := math.Exp2(-dt.Seconds() / halfLife.Seconds())
	added := 1 - kept
	if dt > maxLookInterval {
		added = 0
	}
	means := map[int]float64{}
	for _, n := range u.Users {
		means[n.User] = n.Mean * kept
	}
	for user, n := range heldByUser(slots, claims, -1) {
		means[user] += added * float64(n)
	}
	rank := func(user int) float64 {
		if user == own {
			return math.Inf(1)
		}
		return means[user]
	}
	maps.DeleteFunc(means, func(_ int, mean float64) bool { return mean <= usageUnit/100 })
	order := slices.SortedFunc(maps.Keys(means), func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a, b))
	})
	u.At, u.Users = now, nil
	for _, user := range order[:min(len(order), maxUsers)] {
		u.Users = append(u.Users, UserUsage{user, means[user]})
	}
}

// Mean returns the usage of a user, rounded down.
func (u *SlotUsage) Mean(user int) float64 {
	for _, n := range u.Users {
		if n.User == user {
			return math.Floor(n.Mean/usageUnit) * usageUnit
		}
	}
	return 0
}

// SetUsed sets Used in all claims. Of another user, what the user claims counts if it is more than
// what we have seen: a false claim can only reduce the part of its own user. So nobody knows of
// a higher usage of a user than the others do, but for its own, and the parts that users compute
// for themselves add up to all slots at least.
func (u *SlotUsage) SetUsed(own int, claims []SlotClaim) {
	for i := range claims {
		c := &claims[i]
		seen := u.Mean(c.User)
		if c.User == own {
			c.Used = seen
		} else {
			c.Used = max(c.Used, seen)
		}
	}
}

// declinedFor is for how long a user who has declined a slot is offered none beyond its part by
// max-min fairness.
const declinedFor = 10 * time.Minute

// SlotOffers remembers which users do not take slots that are free for them, because their programs
// are older, their jobs need several slots, or their claims are false.
type SlotOffers struct{ users map[int]slotOffer }

type slotOffer struct {
	held          int
	since         time.Duration // since when a slot has been free for the user; 0: none is
	declinedUntil time.Duration
}

// Mark records a look at the claims, and sets Declined in those of other users who wanted a slot and
// left it free for LastSlotDelay, although the run with index me could have used it.
func (o *SlotOffers) Mark(now time.Duration, slots int, claims []SlotClaim, me int) {
	isFree := HeldSlots(slots, claims, -1) < slots && claims[me].Want > claims[me].Held
	users, wants := map[int]slotOffer{}, map[int]int{}
	for _, c := range claims {
		n := users[c.User]
		n.held += max(c.Held, 0)
		users[c.User] = n
		wants[c.User] += max(c.Want, c.Held, 0)
	}
	for user, n := range users {
		before := o.users[user]
		n.since, n.declinedUntil = before.since, before.declinedUntil
		switch {
		case !isFree || wants[user] <= n.held:
			n.since = 0
		case n.since == 0 || n.held > before.held:
			n.since = now
		case now-n.since >= LastSlotDelay:
			n.since, n.declinedUntil = 0, now+declinedFor
		}
		users[user] = n
	}
	o.users = users
	for i := range claims {
		c := &claims[i]
		c.Declined = c.User != claims[me].User && now < users[c.User].declinedUntil
	}
}
