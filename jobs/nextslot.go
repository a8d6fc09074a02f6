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
	// Names of the other users that hold the slots of the host, at most MaxSlotUsers.
	Users []string `json:"users,omitempty"`
	// Names of other runs of the same user that hold some, at most MaxSlotUsers.
	Runs []string `json:"runs,omitempty"`
}

// MaxSlotUsers bounds NextSlot.Users and NextSlot.Runs.
const MaxSlotUsers = 4

// Text describes the slot as the continuation of a sentence, or as a sentence of its own.
func (n *NextSlot) Text() string {
	switch n.From {
	case SlotOfJob:
		if n.In <= 0 {
			return fmt.Sprintf("the next slot is due when job %d ends on %s, which takes longer than expected",
				n.Job, n.Host)
		}
		return fmt.Sprintf("the next slot is due in about %s, when job %d ends on %s", text.Span(n.In), n.Job, n.Host)
	case SlotOfOthers:
		if n.In <= 0 {
			return fmt.Sprintf("the next slot is due now on %s, from %s", n.Host, n.holders())
		}
		return fmt.Sprintf("the next slot is due within %s on %s, from %s", text.Span(n.In), n.Host, n.holders())
	}
	return "it is not known when the next slot is due"
}

// holders names the other runs of the user, and the other users.
func (n *NextSlot) holders() string {
	var who []string
	if len(n.Runs) > 0 {
		who = append(who, "your "+text.Verb(len(n.Runs), "run ", "runs ")+strings.Join(n.Runs, ", "))
	}
	if len(n.Users) > 0 {
		who = append(who, "runs of "+strings.Join(n.Users, ", "))
	}
	if who == nil {
		return "other runs"
	}
	return strings.Join(who, " and ")
}
