package dispatch

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

const (
	maxLiveText   = 300  // length of each text of a host in live.State, in bytes
	maxLiveQueues = 1000 // number of queues in live.State
)

// Signals report that the result of Live may have changed. Each channel holds at most one signal
// and has one receiver.
type Signals struct {
	Changes chan struct{} // something other than host reports
	Reports chan struct{} // a host report has arrived
	Durable chan struct{} // records have become durable
}

func newSignals() Signals {
	return Signals{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// Signal sends to a channel that holds one signal, unless it holds one already.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Signals returns the channels on which the engine reports changes.
func (d *Dispatcher) Signals() Signals { return d.signals }

// Live returns the state of the run that is not in the journal. It leaves Token, Durable, and
// Question empty. After the dispatcher has ended, it returns the last state. The error is that of
// ctx.
func (d *Dispatcher) Live(ctx context.Context) (*live.State, error) {
	v, err := query(ctx, d, (*engine).liveView)
	if errors.Is(err, errEnded) {
		v, err = d.last, nil
	}
	if err != nil {
		return nil, err
	}
	return v.state(), nil
}

// liveView is the part of a live.State that the engine copies. The caller's goroutine formats it.
type liveView struct {
	s       live.State
	now     time.Duration // Time.Mono
	hosts   []Host
	running sched.RunningView
}

func (e *engine) liveView() liveView {
	now := e.now()
	v := liveView{now: now.Mono, hosts: e.hosts(now), running: e.core.Running()}
	v.s = live.State{
		V: jobs.FormatLive.Version, Run: e.cfg.RunUID, Epoch: e.cfg.Open.Epoch, At: now.Wall.Time(), More: e.inputOpen, Held: e.core.Paused(), Draining: e.core.WhyDraining(), Stuck: e.core.WhyStuck(),
		Deleted: e.deleted, Tries: cmp.Or(e.cfg.Sched.Tries, jobs.DefaultTries), Hybrid: e.core.Hybrid(),
		Rate: e.rate.perSecond(now.Mono), Rates: e.rate.history(now.Mono),
	}
	if err := e.launchProblem(now); err != nil {
		v.s.Problem = err.Error()
	}
	if e.finish != nil {
		v.s.Finish = &live.Finish{How: e.finish.How.String(), Why: e.finish.Why}
		if e.finish.How == sched.Fenced { // this dispatcher does not write the journal any more
			v.s.Problem = ""
		}
	}
	v.s.NextSlot = e.core.NextSlot()
	if a := e.core.Awaited(now); len(a.Hosts) > 0 {
		v.s.Awaited = &live.Await{Hosts: a.Hosts[:min(len(a.Hosts), live.MaxAwaited)], Text: a.Text,
			HasLimit: a.HasLimit}
	}
	if eta, spread, ok := e.core.ETA(now); ok {
		v.s.ETA, v.s.Spread = eta.Round(time.Millisecond), spread.Round(time.Millisecond)
	}
	for _, q := range e.core.Queues(maxLiveQueues) {
		v.s.Queues = append(v.s.Queues, live.Queue{Name: q.Name, Mean: q.Mean, Deviation: q.Deviation})
	}
	return v
}

func (v *liveView) state() *live.State {
	s := v.s
	s.Hosts = make([]live.Host, len(v.hosts))
	for i := range v.hosts {
		s.Hosts[i] = liveHost(&v.hosts[i], v.now)
	}
	s.Stragglers, s.Ending = jobs.RangesOf(v.running.Stragglers), jobs.RangesOf(v.running.Ending)
	s.Progress = latestProgress(v.running.Progress, s.Hosts)
	return &s
}

// latestProgress returns the latest reports, at most live.MaxProgress. For a large fleet it returns
// fewer, to keep live.json below half a megabyte.
func latestProgress(reports []sched.ProgressView, hosts []live.Host) map[string]string {
	const maxBytes, hostBytes, minBytes, reportBytes = 480_000, 370, 32_000, 90
	left := maxBytes
	for i := range hosts {
		left -= hostBytes + len(hosts[i].Note) + len(hosts[i].Reason)
	}
	left = max(left, minBytes)
	if len(reports) > live.MaxProgress || len(reports)*reportBytes > left {
		slices.SortFunc(reports, func(a, b sched.ProgressView) int { return cmp.Compare(b.At, a.At) })
	}
	var list map[string]string
	for _, r := range reports {
		id := r.Attempt.String()
		left -= len(id) + len(r.Text) + len(`"":"",`)
		if left < 0 || len(list) == live.MaxProgress {
			break
		}
		if list == nil {
			list = make(map[string]string, min(len(reports), live.MaxProgress))
		}
		list[id] = r.Text
	}
	return list
}

// liveHost converts a view of a host. Numbers are rounded to a precision that people can
// distinguish, which makes the file a quarter smaller.
func liveHost(h *Host, now time.Duration) live.Host {
	b := &h.Heartbeat
	short := func(s string) string { return text.ShortenBytes(s, maxLiveText) }
	v := live.Host{
		Name: h.Name, HostStatus: jobs.HostStatus{State: h.State, Hold: h.Hold, Reason: short(h.Reason)},
		Linked: h.Linked, Stopped: h.Asked.Use == jobs.HostStopped, Note: short(h.Note),
		Slots: h.Slots, Given: int(h.Asked.Slots), Usable: round(h.Usable), Running: h.Running, Buffered: h.Buffered, Done: h.Done, Failed: h.Failed,
		Load: [3]float64{round(b.Load[0]), round(b.Load[1]),
			round(b.Load[2])}, Busy: round(b.Busy), Ours: round(b.Ours),
		MemFree: b.MemFree, DiskFree: b.DiskFree, FSDelay: b.FSDelay.Round(time.Microsecond), Delay: h.Delay.Round(time.Microsecond),
		Files: short(h.Files), Users: short(b.Sharing.Text()), History: h.History, Idle: h.Idle.Round(time.Millisecond),
	}
	if m := h.Hello; m != nil {
		v.Cores, v.GPUs, v.MemBytes = m.Cores, m.GPUs, m.MemBytes
	}
	if h.Linked {
		used := jobs.GPUs(len(b.LockedGPUs)) * jobs.WholeGPU
		for _, p := range b.PartGPUs {
			used += p.Used
		}
		v.GPUsUsed = float64(used) / float64(jobs.WholeGPU)
	}
	since := func(at time.Duration) time.Duration {
		return max(time.Millisecond, (now - at).Round(time.Millisecond))
	}
	if h.LastHeartbeat > 0 {
		v.Heartbeat = since(h.LastHeartbeat)
	} else {
		v.DiskFree = -1
	}
	if h.Down > 0 {
		v.Down = since(h.Down)
	}
	if h.RetryAt > now {
		v.RetryIn = max(time.Millisecond, (h.RetryAt - now).Round(time.Millisecond))
	}
	return v
}

func round(x float64) float64 { return math.Round(x*100) / 100 }
