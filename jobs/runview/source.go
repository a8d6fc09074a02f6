package runview

import (
	"context"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
)

// source is where the rows come from.
type source interface {
	// visit runs f at the desk and waits for it; when ctx ends first, f may still run.
	visit(ctx context.Context, f func(*desk)) error
	// output reads a piece of a file of an attempt of a host; dir is where they are.
	output(ctx context.Context, r Read, host, dir string) ([]byte, int64, error)
	ended() <-chan struct{}
	close()
}

// liveSource is a dispatcher in this process.
type liveSource struct {
	d     *dispatch.Dispatcher
	dir   string // of the run
	watch *dispatch.Watch
}

func (l *liveSource) visit(ctx context.Context, f func(*desk)) error {
	err := l.d.Inspect(ctx, func(in *dispatch.Inside) {
		f(&desk{table: in.Table, core: in.Core, now: in.Now.Wall, mono: in.Now, tries: in.Tries(), linked: in.Core.Linked,
			dir: func(a *jobs.Attempt) (string, bool) { d := in.FilesDir(a.Host); return d, d != l.dir }, in: in, watch: l.watch})
	})
	if err != nil && ctx.Err() == nil {
		return ErrGone
	}
	return err
}

func (l *liveSource) ended() <-chan struct{} { return l.d.Ended() }
func (l *liveSource) close()                 { l.watch.Close() }

// replayed is the table of a run that nobody dispatches. It never changes.
type replayed struct {
	table *jobs.Table
	past  Past
	over  string // Past.Over, and what may be left behind
	// trouble is Past.Trouble, behind what may be left behind
	trouble []string
	hosts   []live.Host
	gone    chan struct{}
	files   *dispatch.FileReader
}

func newReplayed(t *jobs.Table, p Past) *replayed {
	r := &replayed{table: t, past: p, gone: make(chan struct{}), files: dispatch.NewFileReader()}
	if p.Tries <= 0 {
		r.past.Tries = sched.DefaultTries
	}
	left := LeftBehind(t)
	if r.over = p.Over; r.over != "" {
		r.over += andLeft(left)
	}
	if r.trouble = p.Trouble; left != "" {
		r.trouble = append([]string{left}, r.trouble...)
	}
	r.count()
	return r
}

func (r *replayed) visit(ctx context.Context, f func(*desk)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-r.gone:
		return ErrGone
	default:
	}
	f(&desk{table: r.table, now: jobs.StampOf(time.Now()), tries: r.past.Tries, past: r,
		linked: func(string) bool { return false }, dir: r.past.place().FilesDir})
	return nil
}

func (r *replayed) ended() <-chan struct{} { return r.gone }
func (r *replayed) close()                 { close(r.gone) }

// place says where the files of attempts are.
func (p *Past) place() *results.Place {
	return &results.Place{Dir: p.Run.Dir, HostDirs: p.HostDirs, Here: p.Here}
}

// count makes the hosts of what the table says of them.
func (r *replayed) count() {
	for _, h := range r.past.Hosts {
		r.hosts = append(r.hosts, live.Host{Name: h.Name, State: "unknown", Reason: "nobody dispatches the run",
			Slots: max(0, h.Slots.Fixed), GPUs: max(0, h.GPUs), DiskFree: -1})
	}
	seen := map[string]int{}
	for i := range r.hosts {
		seen[r.hosts[i].Name] = i
	}
	of := func(name string) *live.Host {
		i, ok := seen[name]
		if !ok {
			i = len(r.hosts)
			seen[name] = i
			r.hosts = append(r.hosts, live.Host{Name: name, State: "unknown", Reason: "nobody dispatches the run", DiskFree: -1})
		}
		return &r.hosts[i]
	}
	for i := range r.table.Jobs {
		for _, a := range r.table.Jobs[i].Attempts {
			switch {
			case a.Host == "":
			case a.State == jobs.AttemptRunning:
				of(a.Host).Running += r.table.Jobs[i].Spec.SlotCount()
			case a.Failed():
				of(a.Host).Failed++
			case a.State == jobs.AttemptExited:
				of(a.Host).Done++
			}
		}
	}
}
