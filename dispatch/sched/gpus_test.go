package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// heartbeatLocked sends a heartbeat of a host on which the given devices are locked.
func (s *stage) heartbeatLocked(name string, devices ...int) []Command {
	return s.heartbeat(name, hosts.Heartbeat{LockedGPUs: devices})
}

func refusedForGPUs(name, attempt string, devices ...int) HostRefused {
	return HostRefused{name, &hosts.Refused{Attempts: attemptIDs(attempt), Why: "GPU in use", GPUs: devices}}
}

// TestGPUInUseElsewhere checks that an attempt that is refused because another run holds its device
// moves to a free device of the same host and uses up no try. The host continues with other jobs.
// The device is not tried again before a heartbeat shows that it is free.
func TestGPUInUseElsewhere(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	s.submit(false, &jobs.Options{GPUs: jobs.WholeGPU})
	o := s.step(refusedForGPUs("a", "1.1", 0))
	want(t, "the other device", launchedOn(o, "a"), "1.2")
	want(t, "devices", devices(o), "[[1]]")
	want(t, "failures", s.job(1).Failures, 0)
	want(t, "paused", s.c.hosts[0].probation.paused, false)
	o = s.step(refusedForGPUs("a", "1.2", 1))
	want(t, "none is left", launchedOn(o, "a"), "")
	wantContains(t, "why", s.c.Why(s.now(), 1), "some of them by others")
	s.step(Submit{Specs: []*jobs.Spec{{ID: 2, Command: "true", Options: jobs.NoOptions}}, Last: true})
	want(t, "a job without a GPU", launchedOn(s.commands, "a"), "2.1")
	for range 100 {
		want(t, "while they are in use", launchedOn(s.heartbeatLocked("a", 0, 1), "a"), "")
	}
	o = s.heartbeatLocked("a", 0)
	want(t, "one is free", launchedOn(o, "a"), "1.3")
	want(t, "devices", devices(o), "[[1]]")
}

// TestGPURefusalNeedsADevice checks that a host is paused if it refuses an attempt because of a
// device that the attempt was not given.
func TestGPURefusalNeedsADevice(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	s.submit(true, &jobs.Options{GPUs: jobs.WholeGPU}, jobs.NoOptions)
	want(t, "launched", launchedOn(s.step(refusedForGPUs("a", "1.1", 1)), "a"), "")
	want(t, "paused", s.c.hosts[0].probation.paused, true)
	s.c.hosts[0].probation.paused = false
	s.step(refusedForGPUs("a", "2.1", 0))
	want(t, "paused", s.c.hosts[0].probation.paused, true)
}

// TestGPURefusalsAddUp checks that a host that refuses a device and then reports it as free is
// tried less and less often.
func TestGPURefusalsAddUp(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	s.submit(true, &jobs.Options{GPUs: 2 * jobs.WholeGPU})
	launches := 0
	o := s.step(refusedForGPUs("a", "1.1", 0, 1))
	for s.at < 10*time.Minute {
		if id := launchedOn(o, "a"); id != "" {
			launches++
			o = s.step(refusedForGPUs("a", id, 0))
			continue
		}
		o = s.heartbeatLocked("a")
	}
	wantBetween(t, "launches in ten minutes", launches, 15, 45)
	want(t, "refusals in a row", s.c.hosts[0].foreign.refusals, maxGPURefusals)
	id := ""
	for ; id == ""; id = launchedOn(o, "a") {
		o = s.heartbeatLocked("a")
	}
	s.started("a", id)
	want(t, "refusals in a row after a start", s.c.hosts[0].foreign.refusals, 0)
}

// TestGPUInUseAtHello checks that a device that is in use according to a hello is not tried at all.
// A device of one of the run's own attempts stays assigned to that attempt.
func TestGPUInUseAtHello(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 4))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 5, Slots: 4, MemBytes: 16 << 30, GPUs: 2,
		LockedGPUs: []int{0, 7}}})
	s.submit(true, &jobs.Options{GPUs: jobs.WholeGPU}, &jobs.Options{GPUs: jobs.WholeGPU})
	want(t, "devices", devices(s.commands), "[[1]]")
	s.started("a", "1.1")
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 5, Slots: 4, MemBytes: 16 << 30, GPUs: 2,
		LockedGPUs: []int{1}}})
	s.heartbeatLocked("a", 1)
	s.ended("a", "1.1", succeeded)
	s.heartbeatLocked("a")
	want(t, "free devices, as the other one runs job 2", s.c.hosts[0].freeGPUs(jobs.WholeGPU), 1)
}

// TestOwnGPUsAreNotForeign checks the state after a takeover, when a locked device may belong to an
// attempt of an earlier dispatcher. Such a device is not reported as used by another run.
func TestOwnGPUsAreNotForeign(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 4))
	s.submit(true, &jobs.Options{GPUs: jobs.WholeGPU}, &jobs.Options{GPUs: 2 * jobs.WholeGPU})
	s.started("a", "1.1")
	s = restart(s, testHost("a", 4))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 5, Slots: 4, MemBytes: 16 << 30, GPUs: 2,
		LockedGPUs: []int{0}}})
	s.probedAs("a", "1.1", hosts.IsRunning, nil)
	s.heartbeatLocked("a", 0)
	want(t, "events about other runs", s.numEvents("other runs"), 0)
	want(t, "why", s.c.Why(s.now(), 2), "Job 2 waits: the GPUs it needs are in use.")
	s.ended("a", "1.1", succeeded)
	want(t, "when it has ended", launchedOn(s.heartbeatLocked("a"), "a"), "2.1")
}

// TestTwoJobsShareADevice checks that two jobs share a device and a third does not. A half-used
// device is filled before a free one is split (T3).
func TestTwoJobsShareADevice(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 8)) // with two devices
	half := &jobs.Options{GPUs: jobs.WholeGPU / 2}
	s.submit(true, half, half, &jobs.Options{GPUs: jobs.WholeGPU}, half)
	want(t, "devices", devices(s.commands), "[[0] [0] [1]]")
	s.started("a", "1.1")
	o := s.ended("a", "1.1", succeeded)
	want(t, "the other half", launchedOn(o, "a"), "4.1")
	want(t, "devices", devices(o), "[[0]]")
}

// TestPartsOfADeviceArePacked checks that jobs with parts of a device get the device of which most is
// in use and that has space for them, and that a device holds exactly its whole (T3).
func TestPartsOfADeviceArePacked(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 8)) // with two devices
	quarter, third := &jobs.Options{GPUs: jobs.WholeGPU / 4}, &jobs.Options{GPUs: 333}
	s.submit(true, quarter, quarter, third, third, quarter, &jobs.Options{GPUs: 500}, &jobs.Options{GPUs: 168}, third)
	want(t, "devices", devices(s.commands), "[[0] [0] [0] [1] [1] [1]]")
	for share, n := range map[jobs.GPUs]int{167: 2, 168: 1, 249: 1, 250: 0} {
		want(t, "devices for "+share.String(), s.c.hosts[0].freeGPUs(share), n)
	}
	s.started("a", "1.1")
	want(t, "why", s.c.Why(s.now(), 6), "Job 6 waits: the GPUs it needs are in use.")
}

// TestHalfUsedDeviceTakesHalfAJob checks that a device of which others use half takes only a job
// with half a device, until a heartbeat shows that the device is free. A refused half is not tried
// again before that.
func TestHalfUsedDeviceTakesHalfAJob(t *testing.T) {
	half0 := []hosts.GPUPart{{GPU: 0, Used: jobs.WholeGPU / 2}}
	s := newStage(t, Config{}, testHost("a", 8))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 9, Slots: 8, MemBytes: 16 << 30, GPUs: 1, PartGPUs: half0}})
	half := &jobs.Options{GPUs: jobs.WholeGPU / 2}
	s.submit(true, &jobs.Options{GPUs: jobs.WholeGPU}, half, half)
	want(t, "the free half", launchedOn(s.commands, "a"), "2.1")
	s.step(refusedForGPUs("a", "2.1", 0))
	heartbeat := func(whole []int, half []hosts.GPUPart) []Command {
		s.at += time.Minute
		return s.heartbeat("a", hosts.Heartbeat{LockedGPUs: whole, PartGPUs: half})
	}
	want(t, "both halves in use", launchedOn(heartbeat([]int{0}, nil), "a"), "")
	want(t, "one half in use", launchedOn(heartbeat(nil, half0), "a"), "2.2")
	s.started("a", "2.2")
	want(t, "the other user's half", launchedOn(heartbeat([]int{0}, nil), "a"), "")
	want(t, "he has ended", launchedOn(heartbeat(nil, half0), "a"), "3.1")
}

// TestUsableDevices checks that the devices are those that the host reports or those of gpu_ids,
// and that gpus= limits how many of them may be used.
func TestUsableDevices(t *testing.T) {
	for _, c := range []struct {
		ids  []int
		most int
		want string // of one job each
	}{
		{nil, -1, "[[3] [5]]"}, {nil, 1, "[[3]]"}, {[]int{5}, -1, "[[5]]"}, {[]int{5, 8}, 1, "[[5]]"}, {nil, 3,
			"[[0] [1] [2]]"}, {[]int{}, -1, "[]"},
	} {
		spec := testHost("a", 8)
		spec.GPUIDs, spec.GPUs = c.ids, c.most
		s := newStage(t, Config{}, spec)
		s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 9, Slots: 8, MemBytes: 16 << 30, GPUs: 2,
			GPUIDs: []int{5, 3, -1, 5}}})
		s.submit(true, repeatOptions(4, &jobs.Options{GPUs: jobs.WholeGPU})...)
		want(t, fmt.Sprintf("devices with gpu_ids %v, gpus %d", c.ids, c.most), devices(s.commands), c.want)
	}
}
