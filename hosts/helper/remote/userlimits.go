//go:build linux

package remote

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/internal/account"
)

// userLimits is what the administrators of this host allow our user.
type userLimits struct{ hosts.UserLimits }

// maxTrustedFile is the maximum size, in bytes, of a file in which root limits or weights users.
const maxTrustedFile = 64 << 10

// userLimits reads hosts.UserLimitsFile. The file counts only if it belongs to root and nobody else
// can write it. problem is "" or a line about a file that does not count, or not in all parts.
func (s site) userLimits() (allowed userLimits, problem string) {
	text, err := readTrusted(s.root+hosts.UserLimitsFile, s.adminUID, maxTrustedFile)
	if isMissing(err) {
		return allowed, ""
	}
	if err != nil {
		return allowed, fmt.Sprintf("%s is ignored: %v", hosts.UserLimitsFile, err)
	}
	user := account.Current()
	var problems []string
	allowed.UserLimits, problems = hosts.ParseUserLimits(text, user.Name, strconv.Itoa(user.UID))
	if len(problems) > 0 {
		problem = fmt.Sprintf("%s: %s", hosts.UserLimitsFile, strings.Join(problems, "; "))
	}
	return allowed, problem
}

func (l userLimits) whyClosed() string { return "it is closed by its administrators: " + l.Closed }

// checkOpen returns an error if a check should report that the host is closed. A run is served
// nevertheless, because its jobs may be running here: nothing is started for it, see currentOwner.
func (l userLimits) checkOpen(o *hosts.Open) error {
	if o.Check && l.Closed != "" {
		return errors.New(l.whyClosed())
	}
	return nil
}

// apply reduces what the hello offers to what is allowed.
func (l userLimits) apply(hello *hosts.Hello) {
	hello.MaxSlots = l.Slots
	if l.Slots > 0 && l.Slots < hello.Slots {
		hello.Limits = append(hello.Limits,
			hosts.CapacityLimit{Kind: hosts.CapacityOfSlots, Value: float64(l.Slots), Of: float64(hello.Slots)})
		hello.Slots = l.Slots
	}
	if l.Memory > 0 && l.Memory < hello.MemBytes {
		hello.Limits = append(hello.Limits, hosts.CapacityLimit{Kind: hosts.CapacityOfReservations,
			Value: float64(l.Memory), Of: float64(hello.MemBytes)})
		hello.MemBytes = l.Memory
	}
}

// memoryWithin returns the smaller one of a number of bytes and the limit.
func (l userLimits) memoryWithin(bytes int64) int64 {
	if l.Memory > 0 {
		return min(bytes, l.Memory)
	}
	return bytes
}

// slotBound returns how many slots the run with index me may use because of the limit, which holds
// for all runs of its user together.
func (l userLimits) slotBound(claims []hosts.SlotClaim, me int, offset float64) int {
	if l.Slots == 0 {
		return math.MaxInt
	}
	own := slices.DeleteFunc(slices.Clone(claims), func(c hosts.SlotClaim) bool { return c.User != claims[me].User })
	return hosts.SlotBound(l.Slots, nil, own, slices.Index(own, claims[me]), offset)
}

// memoryOfOthers returns how many bytes of what is allowed, or else of total, the run with index me
// must leave to other runs.
func (l userLimits) memoryOfOthers(total int64, claims []hosts.SlotClaim, me int) int64 {
	held := hosts.HeldMemory(total, claims, me)
	if l.Memory == 0 || l.Memory >= total {
		return held
	}
	var own int64 // of other runs of the user
	for i, c := range claims {
		if i != me && c.User == claims[me].User {
			own += min(max(c.Memory, 0), total)
		}
	}
	// The others take first what is not allowed to us.
	return min(max(own, held-(total-l.Memory)), l.Memory)
}
