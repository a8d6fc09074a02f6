package runview

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The table of what finished jobs gave (E3, X5). Outputs are read and figures computed
// in a goroutine of its own, which lives while somebody asks for a table: neither the
// engine nor a Look waits for it.

const (
	maxWishes  = 8                      // tables that are kept
	wanted     = 3 * time.Second        // an open view asks at least so often
	firstTable = 50 * time.Millisecond  // for which a Look waits for a table that nobody has asked for before
	remakeWait = 500 * time.Millisecond // tables that only grow are made no more often, …
	remakePart = 20                     // … and take no more than this part of the time
)

// tables are those that somebody has asked for lately.
type tables struct {
	v    *View
	ctx  context.Context
	poke chan struct{} // room for one: there may be something to do

	mu      sync.Mutex
	tabular bool // there is something to tabulate beyond the jobs themselves
	wishes  []*wish
	working bool
	broken  string // a panic has ended the work for good

	done finished // of the goroutine alone, as what follows
	sets []*figures
}

// wish is a table that somebody asks for.
type wish struct {
	key   string
	ask   TableAsk // without its window
	asked time.Time
	made  *made         // the newest; nil: none yet
	told  bool          // that there is one
	ready chan struct{} // closed then
}

func (t *tables) init(v *View) {
	t.v = v
	t.ctx = v.ctx
	t.poke = make(chan struct{}, 1)
}

// boundTable keeps what is asked for within what it may cost, and tells apart what is
// asked for and which part of it is shown.
func boundTable(a TableAsk) TableAsk {
	few := func(list []string) []string { return list[:min(len(list), MaxTableNames)] }
	a.Figures, a.Group, a.Pivot = few(a.Figures), few(a.Group), few(a.Pivot)
	a.JobsWindow = JobsWindow{Filter: a.Filter, Reverse: a.Reverse}
	return a
}

func keyOfTable(a *TableAsk) string {
	return fmt.Sprintf("%q %v %q %q %q %q %d %v %q", a.Filter, a.Reverse, a.Figures, a.By, a.Best, a.Group, a.MinSize, a.Heat, a.Pivot)
}

// want says that somebody asks for a table, and gets it made.
func (t *tables) want(ask *TableAsk) *wish {
	a := boundTable(*ask)
	key := keyOfTable(&a)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.wishes, func(w *wish) bool { return w.key == key })
	if i < 0 {
		if len(t.wishes) == maxWishes {
			t.wishes = slices.Delete(t.wishes, 0, 1)
		}
		t.wishes = append(t.wishes, &wish{key: key, ask: a, ready: make(chan struct{})})
		i = len(t.wishes) - 1
	}
	w := t.wishes[i]
	w.asked = time.Now()
	t.wishes = append(slices.Delete(t.wishes, i, i+1), w) // the one asked for longest ago goes first
	if !t.working && t.broken == "" && t.ctx.Err() == nil {
		t.working = true
		go t.work()
	}
	select {
	case t.poke <- struct{}{}:
	default:
	}
	return w
}

// await gives a table that was not asked for before a moment to be made: a key then
// shows at once what it asks for.
func (t *tables) await(ctx context.Context, ask *TableAsk) {
	t.mu.Lock()
	known := t.tabular && t.broken == ""
	t.mu.Unlock()
	if !known { // nor whether there is any
		return
	}
	late := time.NewTimer(firstTable)
	defer late.Stop()
	select {
	case <-t.want(ask).ready:
	case <-late.C:
	case <-t.ctx.Done():
	case <-ctx.Done():
	}
}

// active are the wishes that somebody still has; none ends the work.
func (t *tables) active() []*wish {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*wish
	for _, w := range t.wishes {
		if time.Since(w.asked) < wanted {
			list = append(list, w)
		}
	}
	if len(list) == 0 || t.ctx.Err() != nil {
		t.working = false
		return nil
	}
	return list
}

// work makes tables until nobody asks for one any more.
func (t *tables) work() {
	defer func() {
		if p := recover(); p != nil { // a view must not end the run
			t.mu.Lock()
			t.working, t.broken = false, fmt.Sprintf("the table cannot be made, a defect of ours: %v", p)
			t.mu.Unlock()
			t.tell()
		}
	}()
	for {
		list := t.active()
		if list == nil {
			return
		}
		next, err := t.step(list)
		if err != nil { // the board is being closed, or its dispatcher has gone
			t.mu.Lock()
			t.working = false
			t.mu.Unlock()
			return
		}
		if next <= 0 {
			continue
		}
		timer := time.NewTimer(min(next, wanted))
		select {
		case <-t.poke:
		case <-timer.C:
		case <-t.ctx.Done():
		}
		timer.Stop()
	}
}

// step takes in what has changed, reads a piece of what is to be read and makes the
// tables that are due. It returns when there is more to do.
func (t *tables) step(list []*wish) (next time.Duration, err error) {
	if next = t.gather(); t.ctx.Err() != nil {
		return 0, t.ctx.Err()
	}
	soon := func(d time.Duration) { next = min(next, d) }
	t.drop(list)
	for _, w := range list { // what is asked for anew comes before all reading
		if w.made == nil {
			unread := t.figures(w.ask.Figures).unread(&t.done)
			t.publish(w, unread == 0 || unread > outputsPiece) // else it is whole in a moment, as far as one can know
		}
	}
	reading := map[*figures]bool{}
	for _, w := range list {
		if f := t.figures(w.ask.Figures); !reading[f] {
			reading[f] = true
			more, err := f.read(t)
			if err != nil {
				return 0, err
			}
			soon(more)
		}
	}
	for _, w := range list {
		f := t.figures(w.ask.Figures)
		if w.made.changes == t.done.changes && w.made.figures == f.changes {
			t.confirm(w)
			continue
		}
		whole := f.known == len(t.done.list) && w.made.read < w.made.of
		due := time.Until(w.made.at.Add(max(remakeWait, remakePart*w.made.took)))
		if due > 0 && !whole {
			soon(due)
			continue
		}
		t.publish(w, true)
	}
	return next, nil
}

// confirm says of a table that nothing it shows has changed, whatever else has.
func (t *tables) confirm(w *wish) {
	if w.made.current.Equal(t.done.at) {
		return
	}
	m := *w.made
	m.current, m.edition = t.done.at, t.done.edition
	t.mu.Lock()
	defer t.mu.Unlock()
	w.made = &m
}

// publish makes a table; who waits for it is told at once, or finds it when next looking.
func (t *tables) publish(w *wish, tell bool) {
	m := t.make(&w.ask)
	t.mu.Lock()
	w.made = m
	t.mu.Unlock()
	if !tell {
		return
	}
	if !w.told {
		w.told = true
		close(w.ready)
	}
	t.tell()
}

// tell wakes those who look.
func (t *tables) tell() {
	t.v.mu.Lock()
	defer t.v.mu.Unlock()
	t.v.changed()
}
