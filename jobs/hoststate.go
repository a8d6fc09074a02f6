package jobs

import "strings"

// HostState is the state of a host, as its dispatcher sees it. A later version may have more
// states.
type HostState string

// The states of a host.
const (
	HostConnecting HostState = "connecting"
	HostUp         HostState = "up"
	HostSuspect    HostState = "suspect" // no heartbeat for a while
	HostLost       HostState = "lost"    // its jobs are queued again
	HostBackingOff HostState = "backing_off"
	HostDraining   HostState = "draining"
	HostDisabled   HostState = "disabled"

	// The states of an instance of a provider.
	HostCreating    HostState = "creating"    // its create command runs
	HostStarting    HostState = "starting"    // it has not answered yet
	HostTerminating HostState = "terminating" // it gets no more jobs

	HostUnknown HostState = "unknown" // nobody dispatches the run
)

// HostHold is why a host that is up starts no jobs, or only one at a time. A later version may have
// more.
type HostHold string

// The reasons why a host that is up starts no jobs.
const (
	NotHeld            HostHold = ""
	HeldByHungDisk     HostHold = "hung_disk"    // its file system does not respond
	HeldByOwner        HostHold = "owner"        // a person uses it, or wants it to be left alone
	HeldUnleased       HostHold = "lease"        // no lease has begun, so it would refuse jobs
	HeldUnmeasured     HostHold = "unmeasured"   // it has a limit, and has not sent a measurement yet
	HeldReceivingFiles HostHold = "files"        // the files that every job gets are still being sent
	HeldByLoad         HostHold = "load"         // max_load
	HeldByMemory       HostHold = "memory"       // min_mem_free
	HeldByDisk         HostHold = "disk"         // min_disk_free
	HeldByUnknownDisk  HostHold = "unknown_disk" // min_disk_free, and its file system has not responded yet
	HeldByOtherRuns    HostHold = "other_runs"   // other runs and users have all slots
	HeldByOthersLoad   HostHold = "others_load"  // others use its cores
	HeldByOwnLoad      HostHold = "own_load"     // our jobs use more than a core each
	HeldQuiet          HostHold = "quiet_hours"
	HeldMute           HostHold = "no_heartbeats" // its helper connects, but never sends heartbeats
	HeldOnTrial        HostHold = "trial"         // one job at a time, until one succeeds
)

// HostStatus is the state of a host, with the reason. It is part of live.json and of
// `status --json`.
type HostStatus struct {
	State HostState `json:"state,omitempty"` // "": not known
	Hold  HostHold  `json:"hold,omitempty"`  // only of a host that is up
	// Reason describes for people why the host is not up or starts no jobs. It does not begin with
	// the name of the host.
	Reason string `json:"reason,omitempty"`
	// Number of attempts that are suspended until a person leaves the host.
	Suspended int `json:"suspended,omitempty"`
}

// StartsJobs reports whether the host starts jobs without restriction.
func (s HostStatus) StartsJobs() bool { return s.State == HostUp && s.Hold == NotHeld }

// IsHeld reports whether the host is up and starts no jobs, or only one at a time.
func (s HostStatus) IsHeld() bool { return s.State == HostUp && s.Hold != NotHeld }

// Word describes the state in a word of at most eleven letters, for a table.
func (s HostStatus) Word() string {
	switch {
	case s.State == HostBackingOff:
		return "waits"
	case s.State == HostUp && s.Suspended > 0:
		return "suspended"
	case s.IsHeld():
		return "held"
	}
	return string(s.State)
}

// Line describes the state in a line that may follow the name of the host and a colon. It is "" if
// there is nothing to say about a host that is up.
func (s HostStatus) Line() string {
	switch {
	case s.State == HostUp || s.State == "":
		return s.Reason
	case s.Reason == "":
		return s.words()
	}
	return s.words() + ": " + s.Reason
}

// Clause describes the state as the continuation of a sentence that begins with the name of the
// host.
func (s HostStatus) Clause() string {
	switch {
	case s.State == HostUp && s.Reason != "":
		return s.Reason
	case s.Reason == "":
		return "is " + s.words()
	}
	return "is " + s.words() + " (" + s.Reason + ")"
}

func (s HostStatus) words() string { return strings.ReplaceAll(string(s.State), "_", " ") }
