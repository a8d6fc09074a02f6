package hosts

import (
	"math"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestMessagesAreBounded checks that no number or text of a message of a host is larger than it can
// be.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("w", 1<<20)
	b := &Heartbeat{Load: [3]float64{math.NaN(), math.Inf(1), -1}, Busy: 1e300, Ours: -3, MemFree: -5, DiskFree: -7,
		Running: -2,
		FSDelay: math.MaxInt64, Suspended: math.MaxInt64, Uptime: -1, Owner: Owner{Who: long}, LockedGPUs: []int{-1,
			1 << 40, 2},
		PartGPUs: slices.Repeat([]GPUPart{{3, 400}, {1 << 40, 1}, {1, 0}, {1, jobs.WholeGPU}, {1, 300}}, 10_000),
		Sharing:  &Sharing{Slots: 1 << 40, Held: -1, Memory: math.MaxInt64, Users: make([]SharedUser, 1000)}}
	Bound(b)
	if b.Load != [3]float64{} || b.Busy > jobs.MaxSlots || b.Ours != 0 || b.MemFree != -1 || b.DiskFree != -1 ||
		b.Running != 0 || b.FSDelay > maxWait || b.Suspended > maxWait ||
		b.Uptime != 0 || len(b.Owner.Who) > maxText || !slices.Equal(b.LockedGPUs, []int{2}) ||
		!slices.Equal(b.PartGPUs, []GPUPart{{1, 300}, {3, 400}}) {
		t.Errorf("heartbeat %+v", b)
	}
	if s := b.Sharing; s.Slots != 0 || s.Held != 0 || s.Memory > maxMem || len(s.Users) > MaxSharedUsers {
		t.Errorf("sharing %+v", s)
	}
	h := &Hello{Cores: -1, Slots: 1 << 40, MaxSlots: 1 << 40, GPUs: 1 << 40, MemBytes: math.MaxInt64,
		Warnings: slices.Repeat([]string{long}, 100)}
	Bound(h)
	if h.Cores != 1 || h.Slots > jobs.MaxSlots || h.MaxSlots > jobs.MaxSlots || h.GPUs > jobs.MaxGPUs ||
		h.MemBytes > maxMem ||
		len(h.Warnings) > maxWarnings || len(h.Warnings[0]) > maxText {
		t.Errorf("%d cores, %d slots of %d, %d GPUs, %d bytes", h.Cores, h.Slots, h.MaxSlots, h.GPUs, h.MemBytes)
	}
	wild := jobs.Outcome{Exit: 1 << 40, Started: 5, Ended: 1, CPU: -1, MaxRSSBytes: math.MaxInt64, Suspended: -1,
		Files: -1, Error: long}
	exits := &Exits{Jobs: []ExitedJob{{Slot: 1 << 40, Outcome: wild}}}
	again := wild
	probed := &Probed{Jobs: []ProbedJob{{Slot: -1, Outcome: &again, Why: long}, {Answer: HasExited}, {Answer: 200}}}
	Bound(exits)
	Bound(probed)
	for _, o := range []*jobs.Outcome{&exits.Jobs[0].Outcome, &again} {
		if o.Exit > 255 || o.Ended < o.Started || o.CPU < 0 || o.MaxRSSBytes > maxMem || o.Suspended < 0 ||
			o.Files < 0 || len(o.Error) > maxText {
			t.Errorf("outcome %+v", o)
		}
	}
	if p := probed.Jobs; exits.Jobs[0].Slot != 0 || p[0].Slot != 0 || len(p[0].Why) > maxText ||
		p[1].Answer != Unknown || p[2].Answer != Unknown {
		t.Errorf("exits %+v, probed %+v", exits.Jobs[0].Slot, p)
	}
	trouble, refused := &Trouble{Text: long}, &Refused{Why: long, GPUs: []int{-1}, Slots: math.MaxInt,
		Limit: jobs.ProcessLimit{Max: -1}}
	Bound(trouble)
	Bound(refused)
	if len(trouble.Text) > maxText || len(refused.Why) > maxText || len(refused.GPUs) > 0 ||
		refused.Slots > jobs.MaxSlots || refused.Limit.Max < 0 {
		t.Errorf("trouble of %d bytes, refused %+v", len(trouble.Text), refused)
	}
}
