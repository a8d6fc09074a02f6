package mirror

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

var (
	seedsFlag = flag.Int("seeds", 25, "number of simulated worlds")
	firstFlag = flag.Uint64("first", 1, "the first seed")
)

// TestSeeds runs the real protocol between machines with disks in memory, over links that are cut,
// while machines lose their power and dispatchers are killed and hang. A mirror that is taken over
// has whatever was launched, no dispatcher launches after its successor has begun, and the run
// continues when everything has healed.
func TestSeeds(t *testing.T) {
	later := 0
	for seed := *firstFlag; seed < *firstFlag+uint64(*seedsFlag); seed++ {
		inWorld(t, seed, func(t *testing.T, w *world) {
			w.live()
			w.mu.Lock()
			later += w.later
			w.mu.Unlock()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, w.allNotes())
			}
		})
		if t.Failed() {
			return
		}
	}
	if later == 0 {
		t.Error("no later dispatcher has had a mirror")
	}
}

// workDir is the directory of the run on each machine.
const workDir = "/data"

var machineNames = []string{"A", "B", "C", "D", "E"}

// world is a set of machines. A has the run directory, B and C may hold mirrors.
type world struct {
	t      *testing.T
	rnd    *rand.Rand
	began  time.Time
	hosts  []*hosts.Host // the voters
	broken error         // why no standby can be started

	mu       sync.Mutex
	machines map[string]*box
	launched []string
	current  *dispatcher // the last one that has launched anything
	since    time.Time   // its first launch
	ranks    int
	later    int // mirrors of dispatchers of later epochs that a standby watched
	running  map[*dispatcher]bool
	dirs     []place
	events   []string
}

// box is a machine.
type box struct {
	name   string
	server *memdisk.Server
	locks  sync.Map // *sync.Mutex by directory
	cut    bool     // guarded by world.mu
	now    atomic.Pointer[boot]
}

// boot is the time of a machine between two power losses.
type boot struct {
	number  int
	disk    *memdisk.Mount
	dead    atomic.Bool
	ctx     context.Context
	off     context.CancelFunc
	watched map[string]bool // mirrors that a standby watches; guarded by world.mu
}

type place struct {
	machine, dir string
}

type dispatcher struct {
	w    *world
	m    *box
	now  *boot
	dir  string
	ctx  context.Context
	kill context.CancelFunc
	hung atomic.Bool
	p    *Primary
	rank int // by the order of the first launches; 0: none
}

// inWorld runs a test in a bubble with a world, whose processes it ends at the end.
func inWorld(t *testing.T, seed uint64, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer func() {
			for _, m := range w.machines {
				m.now.Load().off()
			}
			time.Sleep(time.Minute)
		}()
		test(t, w)
	})
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), began: time.Now(), machines: map[string]*box{},
		running: map[*dispatcher]bool{}}
	for _, name := range machineNames {
		m := &box{name: name, server: memdisk.New()}
		w.machines[name] = m
		m.boot()
		disk := m.now.Load().disk
		w.must(disk.Mkdir(workDir, 0o700))
		w.must(disk.SyncDir("/"))
	}
	for _, name := range machineNames[1:][:2+w.rnd.IntN(3)] {
		w.hosts = append(w.hosts, &hosts.Host{Name: name, Link: "ssh"})
	}
	run, err := rundir.CreateOn(w.machines["A"].now.Load().disk, workDir, "r", rundir.Settings{Version: "1"}, nil)
	w.must(err)
	w.dirs = []place{{"A", run.Dir}}
	return w
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (m *box) boot() {
	b := &boot{watched: map[string]bool{}}
	if was := m.now.Load(); was != nil {
		b.number = was.number + 1
	}
	b.disk = m.server.Mount(fmt.Sprint(m.name, b.number))
	b.disk.Fault = func(string, string) error {
		if b.dead.Load() {
			return syscall.EIO
		}
		return nil
	}
	b.ctx, b.off = context.WithCancel(context.Background())
	m.now.Store(b)
}

func (m *box) lock(dir string) (func(), error) {
	l, _ := m.locks.LoadOrStore(dir, new(sync.Mutex))
	l.(*sync.Mutex).Lock()
	return l.(*sync.Mutex).Unlock, nil
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%8.1f  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// allNotes returns all notes.
func (w *world) allNotes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.events, "\n")
}

// begin starts the first dispatcher, on machine A.
func (w *world) begin() { go w.dispatch(w.machines["A"], w.dirs[0].dir, false) }

// cutOff sets whether a machine is cut off from the others.
func (w *world) cutOff(m *box, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.cut = cut
}

// nLaunched returns the number of launches.
func (w *world) nLaunched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.launched)
}

// launches reports whether anything is launched within a minute.
func (w *world) launches() bool {
	n := w.nLaunched()
	time.Sleep(time.Minute)
	return w.nLaunched() > n
}

// up reports whether packets pass between two machines, in the boots in which they were linked.
func (w *world) up(a, b *box, bootA, bootB *boot) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.now.Load() == bootA && b.now.Load() == bootB && !bootA.dead.Load() && !bootB.dead.Load() &&
		(a == b || !a.cut && !b.cut)
}

// wire is a link to a helper.
type wire struct {
	hosts.Worker
	hello   *hosts.Hello
	in      chan *hosts.Store
	reports chan hosts.Message
	stop    chan struct{}
	once    sync.Once
}

func (l *wire) Hello() *hosts.Hello           { return l.hello }
func (l *wire) Reports() <-chan hosts.Message { return l.reports }
func (l *wire) Err() error                    { return nil }
func (l *wire) Close() error                  { l.once.Do(func() { close(l.stop) }); return nil }
func (l *wire) Send(list ...hosts.Message) error {
	for _, m := range list {
		select {
		case l.in <- m.(*hosts.Store):
		case <-l.stop:
			return errors.New("closed")
		}
	}
	return nil
}

const latency = time.Millisecond

// connect is the Connect of a machine.
func (w *world) connect(from *box) func(context.Context, *hosts.Host, *hosts.Open) (hosts.Worker, error) {
	return func(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
		to := w.machines[h.Name]
		bootA, bootB := from.now.Load(), to.now.Load()
		if !w.up(from, to, bootA, bootB) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(5 * time.Second):
				return nil, errors.New("out of reach")
			}
		}
		time.Sleep(10 * latency)
		l := &wire{hello: &hosts.Hello{}, in: make(chan *hosts.Store, 100), reports: make(chan hosts.Message, 100),
			stop: make(chan struct{})}
		var r *Receiver
		var err error
		if open.Ballot != nil {
			l.hello.Ballot, err = Answer(bootB.disk, workDir, *open.Ballot)
		} else {
			dir := workDir + "/" + PrefixDir + open.Mirror.Generation
			r = &Receiver{Disk: bootB.disk, Dir: dir, OpenMirror: *open.Mirror, Lock: to.lock,
				Watched: func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return bootB.watched[dir]
				},
				Start: func() error {
					if w.broken == nil {
						w.standBy(to, dir)
					}
					return w.broken
				}}
			err = r.Begin()
			l.hello.Mirrors, l.hello.Dir = true, dir
		}
		if time.Sleep(latency); err == nil && !w.up(from, to, bootA, bootB) {
			err = errors.New("the link was cut")
		}
		if err != nil {
			return nil, err
		}
		if r == nil {
			return l, nil
		}
		go func() {
			for {
				select {
				case <-l.stop:
					return
				case m := <-l.in:
					time.Sleep(latency)
					if !w.up(from, to, bootA, bootB) {
						continue
					}
					a := r.Store(m)
					if time.Sleep(latency); w.up(from, to, bootA, bootB) {
						l.reports <- a
					}
				}
			}
		}()
		return l, nil
	}
}

func (w *world) polls(m *box) Polls {
	return Polls{Connect: w.connect(m), Hosts: func() []*hosts.Host { return w.hosts }, Open: hosts.Open{Run: "r"}}
}

// standBy watches the mirror in dir.
func (w *world) standBy(m *box, dir string) {
	now := m.now.Load()
	w.mu.Lock()
	now.watched[dir] = true
	w.mu.Unlock()
	go func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(now.watched, dir)
		}()
		run, err := rundir.OpenOn(now.disk, dir)
		if err != nil {
			w.note("%s: the standby cannot open its mirror: %v", m.name, err)
			return
		}
		w.note("%s: a standby watches", m.name)
		if o, err := journal.ReadOwner(run); err == nil && o != nil && o.Epoch > 1 {
			w.mu.Lock()
			w.later++
			w.mu.Unlock()
		}
		reader, p := journal.NewReader(run, nil), w.polls(m)
		var retryAt time.Time
		for sleep(now.ctx, time.Second) {
			if err := reader.Watch(false); err != nil || !reader.IsHung() || time.Now().Before(retryAt) {
				continue
			}
			err := Claim(now.ctx, run, &p, m.lock)
			if err == nil {
				w.note("%s: the standby takes the run over", m.name)
				w.dispatch(m, dir, true)
				return
			}
			if errors.Is(err, ErrOutdated) {
				w.note("%s: the standby ends: %v", m.name, err)
				return
			}
			w.note("%s: no takeover: %v", m.name, err)
			retryAt = time.Now().Add(10 * time.Second)
		}
	}()
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// dispatch dispatches the run in a directory of a machine until the dispatcher ends.
func (w *world) dispatch(m *box, dir string, mirrored bool) {
	d := &dispatcher{w: w, m: m, now: m.now.Load(), dir: dir}
	d.ctx, d.kill = context.WithCancel(d.now.ctx)
	w.mu.Lock()
	w.running[d] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, d)
	}()
	if err := d.run(mirrored); err != nil {
		w.note("%s: the dispatcher ends: %v", m.name, err)
	}
}

func (d *dispatcher) run(mirrored bool) error {
	w := d.w
	run, err := rundir.OpenOn(d.now.disk, d.dir)
	if err != nil {
		return err
	}
	if known, err := Read(run); err != nil || known != nil && known.Mirror && known.State != Taken {
		return fmt.Errorf("it is a mirror, or unreadable: %v", err)
	}
	j, _, _, err := journal.Take(d.ctx, run,
		journal.TakeOptions{Force: true, Mirror: mirrored, Who: &journal.Owner{Host: d.m.name, User: "ada"}})
	if err != nil {
		return err
	}
	polls := w.polls(d.m)
	p := New(Options{Run: run, Journal: j, Polls: polls, Say: func(text string) { w.note("%s: %s", d.m.name, text) },
		Warn: func(text string) { w.note("%s: warning: %s", d.m.name, text) }, Show: func(string) {}})
	defer p.end()
	w.mu.Lock()
	d.p = p
	w.mu.Unlock()
	j.Confirm = p.Confirm
	standbys := []*hosts.Host{{Name: "B"}, {Name: "C"}}
	if err := Recover(d.ctx, run, j.Epoch(), &polls, (&hosts.Inventory{Hosts: standbys}).Find); err != nil {
		return err
	}
	w.note("%s: dispatches in epoch %d", d.m.name, j.Epoch())
	w.complete(run, d.m.name)
	w.mu.Lock()
	w.dirs = append(w.dirs, place{d.m.name, d.dir})
	w.mu.Unlock()
	go d.protect(p, run, j, standbys)
	go d.heartbeat(p, j)
	for n := 0; sleep(d.ctx, time.Duration(50+n%400)*time.Millisecond); n += 37 {
		d.pause()
		id := fmt.Sprintf("launch-%s-%d-%d", d.m.name, j.Epoch(), n)
		if err := j.Append([]jobs.Record{{Kind: jobs.KindEvent, At: 1, Reason: id}}); err != nil {
			return err
		}
		for err = j.Sync(); err != nil && sleep(d.ctx, time.Second); err = j.Sync() {
			if errors.Is(err, journal.ErrFenced) {
				return err
			}
		}
		if err == nil && d.ctx.Err() == nil {
			w.launch(d, id)
		}
	}
	return d.ctx.Err()
}

// pause waits while the dispatcher hangs.
func (d *dispatcher) pause() {
	for d.hung.Load() && sleep(d.ctx, 100*time.Millisecond) {
	}
}

func (d *dispatcher) heartbeat(p *Primary, j *journal.Journal) {
	for n := 0; sleep(d.ctx, 3*time.Second); n++ {
		d.pause()
		if by, _ := p.Check(); by > 0 {
			d.kill()
		}
		if n%3 == 0 {
			_ = j.Heartbeat() // the next one follows
		}
	}
}

// protect keeps a mirror.
func (d *dispatcher) protect(p *Primary, run *rundir.Run, j *journal.Journal, standbys []*hosts.Host) {
	for sleep(d.ctx, 5*time.Second) {
		for _, h := range standbys {
			if h.Name == d.m.name || p.IsActive() || d.ctx.Err() != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
			id := NewGeneration()
			worker, err := d.w.connect(d.m)(ctx, h,
				&hosts.Open{Mirror: &hosts.OpenMirror{Generation: id, Epoch: j.Epoch()}})
			if cancel(); err != nil {
				continue
			}
			if err := p.Protect(h, worker, id); err != nil {
				d.w.note("%s: no mirror on %s: %v", d.m.name, h.Name, err)
			}
		}
	}
}

// grace is the time that a launch may need from the answer of the mirror to its record here.
const grace = 100 * time.Millisecond

func (w *world) launch(d *dispatcher, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.launched = append(w.launched, id)
	if w.current == d {
		return
	}
	if d.rank > 0 { // it was the current one
		if time.Since(w.since) > grace && !w.t.Failed() {
			w.t.Errorf("%s launches %s, although %s has begun", d.m.name, id, w.current.m.name)
		}
		return
	}
	w.ranks++
	w.current, w.since, d.rank = d, time.Now(), w.ranks
}

// complete checks that a directory that is continued has everything that was launched.
func (w *world) complete(run *rundir.Run, where string) {
	w.mu.Lock()
	launched := append([]string(nil), w.launched...)
	w.mu.Unlock()
	have := map[string]bool{}
	f := journal.Follow(run)
	if _, err := f.Poll(journal.Limit{End: true}, func(_ int, r *jobs.Record) { have[r.Reason] = true }); err != nil {
		w.note("%s: the journal cannot be read: %v", where, err)
		return
	}
	for _, id := range launched {
		if !have[id] {
			w.t.Errorf("%s continues the run, and lacks %s", where, id)
			return
		}
	}
}

// crash cuts the power of machines. Changes that are not durable are lost or kept, by chance. When
// the power is back, a person may start the standbys of the mirrors there again.
func (w *world) crash(list ...*box) {
	for _, m := range list {
		w.note("%s loses its power", m.name)
		now := m.now.Load()
		now.dead.Store(true)
		now.off()
		now.disk.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
			return memdisk.Fate{Keep: w.rnd.IntN(2) * l.Len}
		})
	}
	time.Sleep(time.Second) // their processes end
	for _, m := range list {
		m.boot()
		names, _ := m.now.Load().disk.Names(workDir)
		for _, name := range names {
			if strings.HasPrefix(name, PrefixDir) && w.rnd.IntN(2) == 0 {
				w.standBy(m, workDir+"/"+name)
			}
		}
	}
}

// live lets faults happen, then heals everything.
func (w *world) live() {
	w.begin()
	for range 25 {
		time.Sleep(time.Duration(w.rnd.IntN(40)) * time.Second)
		m := w.machines[machineNames[w.rnd.IntN(len(machineNames))]]
		switch w.rnd.IntN(7) {
		case 0, 1:
			w.cutOff(m, true)
			w.note("%s is cut off", m.name)
		case 2, 3:
			w.heal()
		case 4:
			if a := w.machines["A"]; m != a && w.rnd.IntN(3) == 0 {
				w.crash(a, m)
			} else {
				w.crash(m)
			}
		case 5:
			w.kill(w.rnd.IntN(2) == 0)
		case 6:
			w.resume(w.rnd.IntN(1 << 16))
		}
		if w.t.Failed() {
			return
		}
	}
	w.heal()
	n := w.nLaunched()
	for i := range 30 {
		time.Sleep(20 * time.Second)
		if w.nLaunched() > n || w.t.Failed() {
			return
		}
		w.resume(i) // in each directory in turn
	}
	w.t.Error("everything has healed, and nothing is launched")
}

func (w *world) heal() {
	w.note("all links heal")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		m.cut = false
	}
	for d := range w.running {
		d.hung.Store(false)
	}
}

// kill ends a dispatcher, or makes it hang.
func (w *world) kill(hang bool) {
	w.mu.Lock()
	list := slices.SortedFunc(maps.Keys(w.running),
		func(a, b *dispatcher) int { return cmp.Compare(a.m.name, b.m.name) })
	w.mu.Unlock()
	if len(list) == 0 {
		return
	}
	d := list[0]
	if w.note("%s: killed or hung (%v)", d.m.name, hang); hang {
		d.hung.Store(true)
	} else {
		d.kill()
	}
}

// resume has a person resume the run in one of its directories, unless a dispatcher runs there.
func (w *world) resume(which int) {
	w.mu.Lock()
	at := w.dirs[which%len(w.dirs)]
	busy := false
	for d := range w.running {
		busy = busy || d.m.name == at.machine
	}
	w.mu.Unlock()
	if busy {
		return
	}
	w.note("%s: a person resumes the run", at.machine)
	go w.dispatch(w.machines[at.machine], at.dir, false)
	time.Sleep(30 * time.Second)
}

// TestDamagedDescriptionsAreRefused checks that damaged descriptions are refused.
func TestDamagedDescriptionsAreRefused(t *testing.T) {
	const id = "AAAABBBBCCCCDDDD"
	good := Description{V: 1, Generation: id, Host: "h", Dir: "/d", Voters: []string{id}}
	d, err := parse(good.with(On))
	if err != nil || !bytes.Equal(d.with(Taken), good.with(Taken)) {
		t.Errorf("got %+v, %v", d, err)
	}
	for _, bad := range []string{"", "{", "null", `{"v":2}`, `{"v":1,"generation":"x","state":"on"}`,
		`{"v":1,"generation":"` + id + `","state":"on"}`, `{"v":1,"generation":"` + id +
			`","state":"lost","voters":["` + id + `"]}`,
		`{"v":1,"generation":"` + id + `","state":"on","voters":["` + id + `","` + id + `"]}`,
		`{"v":1,"generation":"../../../../etc/passwd","state":"on","voters":["` + id + `"]}`} {
		t.Run(bad, func(t *testing.T) {
			if d, err := parse([]byte(bad)); err == nil {
				t.Errorf("%s: got %+v", bad, d)
			}
		})
	}
}

// TestBothCannotWin checks the numbers of votes, and that votes of strangers do not count.
func TestBothCannotWin(t *testing.T) {
	for n := 1; n < 100; n++ {
		if a, b := votesNeeded(n, VoteAlone), votesNeeded(n, VoteTakeover); a+b != n+1 || a < 1 || b > n {
			t.Errorf("%d voters: %d and %d votes", n, a, b)
		}
	}
	d := Description{Voters: []string{"a", "b", "c"}}
	if won := d.winner(map[string]string{"x": VoteAlone, "y": VoteAlone, "a": VoteAlone}); won != "" {
		t.Errorf("strangers decide: %s", won)
	}
}

// TestReceiverWritesOnlyFilesOfARun checks that a receiver writes only files of a run directory.
func TestReceiverWritesOnlyFilesOfARun(t *testing.T) {
	r := &Receiver{Disk: memdisk.New().Mount("a"), Dir: "/"}
	for _, name := range []string{"../x", "/etc/passwd", "attempts/x", File, lockFile, "journal/../../x", ""} {
		t.Run(name, func(t *testing.T) {
			if err := r.writePiece(&hosts.StorePiece{Name: name}, map[string]bool{}); err == nil ||
				!strings.Contains(err.Error(), "has no file") {
				t.Errorf("%q: %v", name, err)
			}
		})
	}
}
