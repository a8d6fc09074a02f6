package hosts

import (
	"math"
	"slices"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// The bounds of the numbers and texts in a message of a host.
const (
	maxMem   = 1 << 50 // bytes
	maxDisk  = 1 << 60 // bytes
	maxCount = 1 << 30
	maxText  = 1000 // bytes
	maxPath  = 4096 // bytes, as in Linux

	maxWait     = 10 * 365 * 24 * time.Hour
	maxWarnings = 20           // of a hello
	maxZone     = 14 * 60 * 60 // seconds
)

// Bound limits the numbers, words, and texts of a message of a host to possible values, so that a broken or
// hostile host harms only itself. What is not possible becomes unknown. The times of attempts are
// bounded where their launches are known, in package dispatch/sched.
func Bound(m Message) {
	switch m := m.(type) {
	case *Hello:
		boundHello(m)
	case *Heartbeat:
		boundHeartbeat(m)
	case *Started:
		for i := range m.Jobs {
			m.Jobs[i].Slot = boundedSlot(m.Jobs[i].Slot)
		}
	case *Exits:
		boundExited(m.Jobs)
	case *Withdrawn:
		m.Why = boundedText(m.Why)
	case *Refused:
		m.Why, m.GPUs, m.Slots = boundedText(m.Why), boundedGPUs(m.GPUs), min(max(m.Slots, 0), jobs.MaxSlots)
		m.Limit = boundedLimit(m.Limit)
	case *Probed:
		boundProbed(m.Jobs)
	case *Listed:
		m.Why = boundedText(m.Why)
		boundProbed(m.Jobs)
	case *Inspected:
		m.Why, m.Heartbeat, m.Machine = boundedText(m.Why), boundedText(m.Heartbeat), boundedText(m.Machine)
		m.Host = boundedText(m.Host)
		boundExited(m.Jobs)
	case *Trouble:
		m.Text = boundedText(m.Text)
	case *Chunk:
		m.Why = boundedText(m.Why)
	case *Stored:
		m.Why, m.NoStandby = boundedText(m.Why), boundedText(m.NoStandby)
	}
}

func boundHello(m *Hello) {
	for _, s := range []*string{&m.Machine, &m.Owner.Who, &m.BootID, &m.OS, &m.Arch, &m.CwdError, &m.Error} {
		*s = boundedText(*s)
	}
	m.Dir, m.Spool = boundedPath(m.Dir), boundedPath(m.Spool)
	if b := m.Ballot; b != nil {
		b.Generation, b.Choice, b.Voter = boundedText(b.Generation), boundedText(b.Choice), boundedText(b.Voter)
	}
	m.Cores, m.Slots = min(max(m.Cores, 1), jobs.MaxSlots), min(max(m.Slots, 1), jobs.MaxSlots)
	m.MaxSlots = min(max(m.MaxSlots, 0), jobs.MaxSlots)
	m.MachineCores = min(max(m.MachineCores, m.Cores), jobs.MaxSlots)
	m.Limits = m.Limits[:min(len(m.Limits), maxWarnings)]
	for i, l := range m.Limits {
		kind := known(l.Kind, CapacityOfProcessList)
		m.Limits[i] = CapacityLimit{kind, bounded(l.Value, maxMem), bounded(l.Of, maxMem)}
	}
	m.GPUs, m.GPUIDs = min(max(m.GPUs, 0), jobs.MaxGPUs), boundedGPUs(m.GPUIDs)
	m.LockedGPUs, m.PartGPUs = boundedGPUs(m.LockedGPUs), boundedParts(m.PartGPUs)
	m.MemBytes, m.Uptime = min(max(m.MemBytes, 0), maxMem), max(m.Uptime, 0)
	m.ZoneSeconds = boundedZone(m.ZoneSeconds)
	boundSharing(m.Sharing)
	m.Warnings = m.Warnings[:min(len(m.Warnings), maxWarnings)]
	for i := range m.Warnings {
		m.Warnings[i] = boundedText(m.Warnings[i])
	}
}

func boundHeartbeat(m *Heartbeat) {
	for _, f := range []*float64{&m.Load[0], &m.Load[1], &m.Load[2], &m.Busy, &m.Ours} {
		*f = BoundedCores(*f)
	}
	if m.ZoneSeconds != nil {
		zone := boundedZone(*m.ZoneSeconds)
		m.ZoneSeconds = &zone
	}
	m.LockedGPUs, m.PartGPUs = boundedGPUs(m.LockedGPUs), boundedParts(m.PartGPUs)
	m.Files, m.Owner.Who = boundedText(m.Files), boundedText(m.Owner.Who)
	boundSharing(m.Sharing)
	m.Uptime = max(m.Uptime, 0)
	m.FSDelay, m.Suspended = min(max(m.FSDelay, 0), maxWait), min(max(m.Suspended, 0), maxWait)
	m.MemFree, m.DiskFree = min(max(m.MemFree, -1), maxMem), min(max(m.DiskFree, -1), maxDisk)
	m.Running, m.Buffered = min(max(m.Running, 0), maxCount), min(max(m.Buffered, 0), maxCount)
}

// boundSharing bounds a host's report of other users.
func boundSharing(s *Sharing) {
	if s == nil {
		return
	}
	s.Slots, s.Held = boundedSlot(s.Slots), boundedSlot(s.Held)
	s.Memory = min(max(s.Memory, 0), maxMem)
	s.Users = s.Users[:min(len(s.Users), MaxSharedUsers)]
	for i := range s.Users {
		u := &s.Users[i]
		u.Name, u.Slots, u.Want = boundedText(u.Name), boundedSlot(u.Slots), boundedSlot(u.Want)
		u.GPUs, u.Memory = boundedGPUs(u.GPUs), min(max(u.Memory, 0), maxMem)
		u.Runs, u.OwnRuns = boundedNames(u.Runs), boundedNames(u.OwnRuns)
	}
}

// boundedNames bounds names of runs.
func boundedNames(names []string) []string {
	names = names[:min(len(names), MaxSharedUsers)]
	for i := range names {
		names[i] = boundedText(names[i])
	}
	return names
}

func boundExited(list []ExitedJob) {
	for i := range list {
		list[i].Slot = boundedSlot(list[i].Slot)
		boundOutcome(&list[i].Outcome)
	}
}

func boundProbed(list []ProbedJob) {
	for i := range list {
		p := &list[i]
		p.Slot, p.Why = boundedSlot(p.Slot), boundedText(p.Why)
		if p.Outcome != nil {
			boundOutcome(p.Outcome)
		} else if p.Answer == HasExited {
			p.Answer = Unknown
		}
		p.Answer = known(p.Answer, Dead)
	}
}

func boundOutcome(o *jobs.Outcome) {
	o.Exit = min(max(o.Exit, 0), 255)
	o.CPU, o.MaxRSSBytes, o.Suspended = max(o.CPU, 0), min(max(o.MaxRSSBytes, 0), maxMem), max(o.Suspended, 0)
	o.LeftChildren, o.Files = min(max(o.LeftChildren, 0), 1<<20), min(max(o.Files, 0), maxCount)
	if o.Started < 0 || o.Ended < o.Started {
		o.Ended = o.Started
	}
	o.Signal, o.Error, o.LastLine = boundedText(o.Signal), boundedText(o.Error), boundedText(o.LastLine)
	o.Memory, o.ProcessLimit = known(o.Memory, jobs.OutOfMemory), boundedLimit(o.ProcessLimit)
}

func boundedLimit(l jobs.ProcessLimit) jobs.ProcessLimit {
	return jobs.ProcessLimit{Kind: known(l.Kind, jobs.LimitSystem), Max: max(l.Max, 0), Path: boundedText(l.Path)}
}

// known returns v, or 0 if it is none of the values of its type, of which last is the largest.
func known[T ~uint8 | ~int](v, last T) T {
	if v < 0 || v > last {
		return 0
	}
	return v
}

func boundedText(s string) string { return text.ShortenBytes(s, maxText) }

// boundedPath returns "" for what is too long for a path.
func boundedPath(s string) string {
	return text.If(len(s) <= maxPath, s)
}

func boundedSlot(n int) int {
	if n < 0 || n > jobs.MaxSlots {
		return 0
	}
	return n
}

// boundedGPUs returns the valid device numbers, sorted and without repeats.
func boundedGPUs(numbers []int) []int {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n < 0 || n >= jobs.MaxGPUs })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// boundedParts returns the valid parts of devices, at most one of each device.
func boundedParts(parts []GPUPart) []GPUPart {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p GPUPart) bool {
		return p.GPU < 0 || p.GPU >= jobs.MaxGPUs || p.Used <= 0 || p.Used >= jobs.WholeGPU
	})
	slices.SortStableFunc(parts, func(a, b GPUPart) int { return a.GPU - b.GPU })
	return slices.CompactFunc(parts, func(a, b GPUPart) bool { return a.GPU == b.GPU })
}

func boundedZone(seconds int) int { return min(max(seconds, -maxZone), maxZone) }

// BoundedCores returns 0 if f is not a number of cores.
func BoundedCores(f float64) float64 { return bounded(f, jobs.MaxSlots) }

// bounded returns f between 0 and limit, or 0 if f is not a finite number.
func bounded(f, limit float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return min(max(f, 0), limit)
}
