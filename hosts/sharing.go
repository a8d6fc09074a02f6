package hosts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
)

// SlotClaim describes what one run uses and wants on a host.
type SlotClaim struct {
	User   int    // uid
	Run    string // unique among the claims of a user
	Weight int    // share of the run among the runs of its user
	Slots  int    // slots of the host by its inventory, which it divides; 0: unknown
	Want   int    // slots that it would use, those that it holds included
	Held   int    // slots that its supervisors hold
	Memory int64  // bytes that its running jobs may use
	// Used is the decayed usage of the user, see SlotUsage, as the user claims or we know it.
	Used float64
	// Declined is set if the user has not taken a free slot, see SlotOffers.
	Declined bool
}

// LastSlotDelay is how long a run waits for a slot of a host before it starts one job there although
// other runs and users hold all slots.
const LastSlotDelay = 30 * time.Second

// MaxShareWeight is the largest weight of a user or run.
const MaxShareWeight = 1000

// DivideSlots returns the number of slots to which each claim is entitled, by fair share between users
// and then by weighted max-min fairness between the runs of each user. weights holds the weights of
// users; the default is 1. Rounding changes the part of a user or run by less than one slot. offset,
// from 0 to 1, decides who gets the remainders.
//
// The sums of part and decayed usage of users are in proportion to their weights, but nobody gets
// less than half of its part by max-min fairness, in which usage does not count. A user gets more
// than that part one slot at a time, so that slots of others are not kept for false claims: at most
// one slot more than it holds, and none after it has declined one.
func DivideSlots(slots int, weights map[int]int, claims []SlotClaim, offset float64) []int {
	order := make([]int, len(claims))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(claims[a].User, claims[b].User), cmp.Compare(claims[a].Run, claims[b].Run))
	})
	var users [][]int // of indexes of claims
	for i, n := range order {
		if i == 0 || claims[n].User != claims[order[i-1]].User {
			users = append(users, nil)
		}
		users[len(users)-1] = append(users[len(users)-1], n)
	}
	parts := make([]int, len(claims))
	end := offset // the parts are adjacent intervals; each gets the whole numbers in its interval
	for i, user := range divideAmongUsers(slots, weights, claims, users) {
		runs := make([]portion, len(users[i]))
		for k, n := range users[i] {
			runs[k] = portion{demand: claims[n].demand(slots), weight: boundedWeight(claims[n].Weight)}
		}
		divide(user.part, runs)
		for k, n := range users[i] {
			begin := end
			end += runs[k].part
			parts[n] = int(floor(end) - floor(begin))
		}
	}
	return parts
}

// divideAmongUsers returns the portions of users, each given by the indexes of its claims.
func divideAmongUsers(slots int, weights map[int]int, claims []SlotClaim, users [][]int) []portion {
	list, next := make([]portion, len(users)), make([]float64, len(users))
	for i, runs := range users {
		list[i].weight = boundedWeight(cmp.Or(weights[claims[runs[0]].User], 1))
		declined := false
		for _, n := range runs {
			c := &claims[n]
			list[i].demand += c.demand(slots)
			next[i] += float64(min(max(c.Held, 0), slots))
			declined = declined || c.Declined
		}
		if !declined {
			next[i]++
		}
	}
	divide(float64(slots), list)
	for i := range list {
		u := &list[i]
		u.demand, u.least = min(u.demand, max(u.part, next[i])), u.part/2
		for _, n := range users[i] {
			u.used = max(u.used, min(claims[n].Used, float64(slots)))
		}
	}
	divide(float64(slots), list)
	return list
}

// floor rounds down. It tolerates rounding errors just below a whole number.
func floor(f float64) float64 { return math.Floor(f + 1e-9) }

func boundedWeight(weight int) float64 { return float64(min(max(weight, 1), MaxShareWeight)) }

// demand returns the number of slots that a run would use, at most those of the host.
func (c *SlotClaim) demand(slots int) float64 { return float64(min(max(c.Want, c.Held, 0), slots)) }

// portion is what divide gives to a user or run.
type portion struct {
	weight, used  float64
	least, demand float64 // bounds of part
	part          float64
}

// divide divides total so that the sums of part and used are in proportion to the weights, as far as
// the bounds of the parts allow. It leaves nothing unless all demands are met.
func divide(total float64, list []portion) {
	sum, low, high := 0.0, 0.0, 0.0
	for i := range list {
		p := &list[i]
		p.part = p.demand
		sum, high = sum+p.demand, max(high, (p.used+p.demand)/p.weight)
	}
	if sum <= total {
		return
	}
	// The sum of the parts grows with the level, and is linear between those levels at which a part
	// reaches a bound.
	level := (low + high) / 2
	for i := range 128 {
		sum = 0
		slope := 0.0
		for k := range list {
			p := &list[k]
			p.part = min(max(p.weight*level-p.used, p.least), p.demand)
			sum += p.part
			if p.least < p.part && p.part < p.demand {
				slope += p.weight
			}
		}
		if math.Abs(sum-total) < 1e-13*max(1, total) { // far below what floor tolerates
			return
		}
		if sum > total {
			high = level
		} else {
			low = level
		}
		level += (total - sum) / max(slope, 1)
		if i%4 == 3 || level <= low || level >= high {
			level = (low + high) / 2
		}
	}
}

// SharedSlots returns how many slots of a host are divided among the claims: the most that any of
// them divides, so that whoever divides fewer finds some, less the load of others that a run whose
// share is own respects. All runs must agree on it, whoever divides more slots than there are cores:
// otherwise those with fewer find none free. No run uses more slots than its own inventory allows,
// so a forged claim lets others use these, and takes none from them.
func SharedSlots(own Share, claims []SlotClaim) int {
	rule := max(own.Rule, own.Slots)
	all := rule
	for _, c := range claims {
		all = max(all, c.Slots)
	}
	return all - (rule - own.Slots)
}

// HeldSlots returns the number of slots that are held by runs other than the one with index
// without (-1: by all). A user counts with at most one slot more than the host has.
func HeldSlots(slots int, claims []SlotClaim, without int) int {
	sum := 0
	for _, n := range heldByUser(slots, claims, without) {
		sum += n
	}
	return sum
}

func heldByUser(slots int, claims []SlotClaim, without int) map[int]int {
	users := map[int]int{}
	for i, c := range claims {
		if i != without {
			users[c.User] = min(users[c.User]+max(c.Held, 0), slots+1)
		}
	}
	return users
}

// HeldMemory returns how many bytes of total the jobs of runs other than me may use. Another
// user counts with at most an equal part, which limits the effect of a forged claim.
func HeldMemory(total int64, claims []SlotClaim, me int) (sum int64) {
	users := map[int]int64{claims[me].User: 0}
	for i, c := range claims {
		if i != me {
			users[c.User] += min(max(c.Memory, 0), total)
		}
	}
	for user, n := range users {
		if user != claims[me].User {
			n = min(n, total/int64(len(users)))
		}
		sum += n
	}
	return min(sum, total)
}

// SlotBound returns how many slots the run with index me may use now: its part, less what
// others still hold of it.
func SlotBound(slots int, weights map[int]int, claims []SlotClaim, me int, offset float64) int {
	return min(DivideSlots(slots, weights, claims, offset)[me], max(0, slots-HeldSlots(slots, claims, me)))
}

// KeptSlots remembers how many slots a run held when the claims last fitted, as far as it still wants
// them.
type KeptSlots struct{ held int }

// Mark records a look at the claims. It returns how many slots the run with index me may keep, or take
// again, if the claims hold more slots than there are: what it held, but at most its part without
// usage. These parts add up to no more than all slots. So whatever others claim to hold takes only
// their parts from runs that hold slots. Mark returns 0 if the claims fit.
func (k *KeptSlots) Mark(slots int, weights map[int]int, claims []SlotClaim, me int, offset float64) int {
	held, want := max(claims[me].Held, 0), max(claims[me].Want, claims[me].Held)
	if HeldSlots(slots, claims, -1) <= slots {
		k.held = held
		return 0
	}
	k.held = min(max(k.held, held), want)
	part := DivideSlots(slots, weights, claims, offset)[me]
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Used, claims[i].Declined = 0, false
	}
	return min(part, DivideSlots(slots, weights, claims, offset)[me], k.held)
}

// SlotsFit reports whether a run may keep the slots that it has just claimed. If the others hold all,
// it may hold as many as beyond. With 1, a user may hold one slot, so that neither a forged claim nor
// long jobs of others keep a user from a host forever. So may one of the user's runs beside
// the others. More are KeptSlots.
func SlotsFit(slots int, claims []SlotClaim, me, beyond int) bool {
	held := HeldSlots(slots, claims, -1)
	if held <= slots {
		return true
	}
	if beyond > 1 && claims[me].Held <= beyond {
		return true
	}
	own := 0
	for _, c := range claims {
		if c.User == claims[me].User {
			own += c.Held
		}
	}
	held += own - min(own, slots+1) // HeldSlots has bounded it
	return beyond > 0 && (own <= 1 || claims[me].Held <= 1 && held <= slots+1)
}

// Text lists the users of a shared host and what each of them uses.
func (s *Sharing) Text() string {
	if s == nil {
		return ""
	}
	var users []string
	for _, u := range s.Users {
		use := u.Name + " " + text.Plural(u.Slots, "slot")
		use += text.If(u.Want > u.Slots, fmt.Sprintf(" of %d wanted", u.Want))
		use += text.If(u.Memory > 0, ", "+text.Size(u.Memory))
		for _, n := range u.GPUs {
			use += fmt.Sprintf(", GPU %d", n)
		}
		use += text.If(len(u.Runs) > 0, " ("+strings.Join(u.Runs, ", ")+")")
		users = append(users, use)
	}
	return strings.Join(users, "; ")
}
