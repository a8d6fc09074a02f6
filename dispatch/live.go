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

// Signals report that the result of Live may have changed, and that launches wait. Each channel holds at
// most one signal and has one receiver.
type Signals struct {
	Changes chan struct{} // something other than host reports
	Reports chan struct{} // a host report has arrived
	Durable chan struct{} // records have become durable
	Holding chan struct{} // launches wait for packs
}

func newSignals() Signals {
	return Signals{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
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

// Live returns the state of the run that is not in the journal. It leaves the token, the
// durable position, and the question empty. After the dispatcher has ended, it returns the last
// state. The error is that of ctx.
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
	s       live.State    // of its hosts only what liveHosts returns
	now     time.Duration // Time.Mono
	views   []sched.HostView
	running sched.RunningView
}

func (e *engine) liveView() liveView {
	now := e.now()
	e.history.sample(e, now)
	v := liveView{now: now.Mono, views: e.core.Hosts(), running: e.core.Running()}
	v.s = live.State{
		V: jobs.FormatLive.Version, Run: e.cfg.RunUID, Epoch: e.cfg.Open.Epoch, At: now.Wall.Time(), More: e.inputOpen,
		Held: e.core.Paused(), Draining: e.core.WhyDraining(), Stuck: e.core.WhyStuck(), Hosts: e.liveHosts(v.views),
		Deleted: e.deleted, Tries: cmp.Or(e.cfg.Sched.Tries, jobs.DefaultTries), Hybrid: e.core.Hybrid(),
		Rate: e.rate.perSecond(now.Mono), Rates: e.rate.history(now.Mono),
	}
	if err := e.launchProblem(now); err != nil {
		v.s.Problem = err.Error()
	}
	v.s.Finish = e.liveFinish()
	if e.finish != nil && e.finish.How == sched.Fenced {
		v.s.Problem = "" // this dispatcher does not write the journal any more
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
	s.Hosts = slices.Clone(v.s.Hosts)
	for i := range v.views {
		fillHost(&s.Hosts[i], &v.views[i], v.now)
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
		jobs.Insert(&list, id, r.Text)
	}
	return list
}

// fillHost adds the core's view of a host. Numbers are rounded to a precision that people can
// distinguish, which makes the file a quarter smaller.
func fillHost(h *live.Host, v *sched.HostView, now time.Duration) {
	b := &v.Heartbeat
	short := func(s string) string { return text.ShortenBytes(s, maxLiveText) }
	h.Name, h.HostStatus = v.Name, v.HostStatus
	h.Reason = short(v.Reason)
	h.Stopped, h.Given = v.Asked.Use == jobs.HostStopped, int(v.Asked.Slots)
	h.Slots, h.Usable, h.Running, h.Buffered = v.Slots, round(v.Usable), v.Running, v.Buffered
	h.Done, h.Failed, h.Idle = v.Done, v.Failed, v.Idle.Round(time.Millisecond)
	h.Load = [3]float64{round(b.Load[0]), round(b.Load[1]), round(b.Load[2])}
	h.Busy, h.Ours, h.MemFree, h.DiskFree = round(b.Busy), round(b.Ours), b.MemFree, b.DiskFree
	h.FSDelay, h.Delay = b.FSDelay.Round(time.Microsecond), h.Delay.Round(time.Microsecond)
	h.Note, h.Files, h.Users = short(h.Note), short(h.Files), short(b.Sharing.Text())
	if m := v.Hello; m != nil {
		h.Cores, h.GPUs, h.MemBytes = m.Cores, m.GPUs, m.MemBytes
	}
	if h.Linked {
		used := jobs.GPUs(len(b.LockedGPUs)) * jobs.WholeGPU
		for _, p := range b.PartGPUs {
			used += p.Used
		}
		h.GPUsUsed = float64(used) / float64(jobs.WholeGPU)
	}
	since := func(at time.Duration) time.Duration {
		return max(time.Millisecond, (now - at).Round(time.Millisecond))
	}
	if v.LastHeartbeat > 0 {
		h.Heartbeat = since(v.LastHeartbeat)
	} else {
		h.DiskFree = -1
	}
	if v.Down > 0 {
		h.Down = since(v.Down)
	}
	if v.RetryAt > now {
		h.RetryIn = max(time.Millisecond, (v.RetryAt - now).Round(time.Millisecond))
	}
}

func round(x float64) float64 { return math.Round(x*100) / 100 }
