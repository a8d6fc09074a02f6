package jobs

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/internal/text"
)

// SlotSource is from whom jobs that wait get the next slot.
type SlotSource string

// The sources.
const (
	SlotUnknown  SlotSource = "unknown" // no running job has an estimate
	SlotOfJob    SlotSource = "job"     // a job of the run ends
	SlotOfOthers SlotSource = "others"  // other runs and users hold all slots of a host, and must yield one
)

// NextSlot describes when jobs that wait get the next slot, and from whom.
type NextSlot struct {
	From SlotSource    `json:"from"`
	Host string        `json:"host,omitempty"` // "": unknown
	Job  ID            `json:"job,omitempty"`  // the job that ends
	In   time.Duration `json:"in_ns"`          // 0: it is overdue, or unknown
	// Names of the users that hold the slots of the host, at most MaxSlotUsers.
	Users []string `json:"users,omitempty"`
}

// MaxSlotUsers bounds NextSlot.Users.
const MaxSlotUsers = 4

// Text describes the slot as the continuation of a sentence, or as a sentence of its own.
func (n *NextSlot) Text() string {
	switch n.From {
	case SlotOfJob:
		if n.In <= 0 {
			return fmt.Sprintf("the next slot is due when job %d ends on %s, which takes longer than expected", n.Job, n.Host)
		}
		return fmt.Sprintf("the next slot is due in about %s, when job %d ends on %s", text.Span(n.In), n.Job, n.Host)
	case SlotOfOthers:
		who := "other runs"
		if len(n.Users) > 0 {
			who = "runs of " + strings.Join(n.Users, ", ")
		}
		if n.In <= 0 {
			return fmt.Sprintf("the next slot is due now on %s, from %s", n.Host, who)
		}
		return fmt.Sprintf("the next slot is due within %s on %s, from %s", text.Span(n.In), n.Host, who)
	}
	return "it is not known when the next slot is due"
}
