package dispatch

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// maxLaunchBytes bounds a launch message, well below the limit of a frame.
const maxLaunchBytes = 1 << 20

// launchMessages returns the messages of a launch, with everything that the host must know about
// the jobs, and with the latest time at which it may accept them, by the host's own clock. The core
// does not give up a silent host before that time.
func (a *agent) launchMessages(o sched.Launch) []*hosts.Launch {
	expire := a.hostClock()
	if expire > 0 { // otherwise the link has ended, or the host refuses the launch
		lostAfter := a.host.Load().LostAfterOrDefault()
		expire += min(lostAfter, a.d.cfg.Sched.Lease(lostAfter, a.heartbeat))
	}
	var all []*hosts.Launch
	var m *hosts.Launch
	size := 0
	for _, p := range o.Jobs {
		j := a.launchJob(p)
		n := bytesOf(&j)
		if m == nil || size+n > maxLaunchBytes {
			m = &hosts.Launch{Epoch: a.epoch(), ExpireUptime: expire}
			all = append(all, m)
			size = 0
		}
		m.Jobs = append(m.Jobs, j)
		size += n
	}
	return all
}

func (a *agent) launchJob(p sched.LaunchItem) hosts.LaunchJob {
	s := p.Spec
	j := hosts.LaunchJob{
		Attempt: p.Attempt, Command: s.Command, Cwd: s.Cwd, Env: s.Env, Params: s.Params(),
		Timeout: p.Timeout, Slots: s.Slots, GPUs: p.GPUs, GPUShare: s.GPUs % jobs.WholeGPU, Restart: p.Restart,
	}
	if !a.host.Load().NoMemLimit {
		j.Mem = p.Mem
	}
	a.d.cfg.Files.launch(&j, s)
	if s.Setup != "" {
		j.Setup = hosts.JoinSetups(a.d.cfg.Open.Shell, a.host.Load().Setup, a.d.cfg.Open.Setup, s.Setup)
	}
	return j
}

// bytesOf returns the approximate size of a job in a message.
func bytesOf(j *hosts.LaunchJob) int {
	n := 64 + len(j.Command) + len(j.Cwd) + len(j.Setup)
	if j.Files != nil {
		for _, p := range j.Files.Return {
			n += 4 + len(p)
		}
	}
	for _, e := range j.Env {
		n += 8 + len(e.Name) + len(e.Value)
	}
	for _, p := range j.Params {
		n += 8 + len(p.Name) + len(p.Value)
	}
	return n
}
