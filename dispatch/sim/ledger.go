package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// ledger is the durable content of the journal. It reads the bytes of the files as they reach the
// disk. Besides a table that jobs.Fold computes, it keeps accounts of its own (account.go).
type ledger struct {
	epoch    int // of the newest file with a whole first record; its dispatcher owns the run
	files    []journalBytes
	observer rundir.Disk
	dec      jobs.RecordReader
	table    *jobs.Table // the shadow: the durable records, folded
	touched  []jobs.ID   // jobs changed since the last comparison with a live table
	jobs     []account
	seqs     map[int64]jobs.ID // by result number: the job that has the result
	byExit   map[int64]bool    // by result number: whether the attempt's own exit gave the result
	seq      int64             // the newest result number
	acked    int64
	requests map[string]int // how often each request was answered
	// How many records each request caused that change hosts or launching.
	caused       map[string]int
	hostSettings map[string]jobs.HostSetting // by host: what people asked for in the newest record
	// A person has paused launching, according to the newest record.
	paused bool
	// A setting was recorded since the last comparison with the core.
	hostSettingChanged bool
	ended              bool
	machines           map[string]string // by name: the machine behind it in the newest record
	hosts              map[string]jobs.HostRequest
	instances          map[string]jobs.InstanceState
}

// journalBytes is one file of the journal.
type journalBytes struct {
	f          rundir.File
	numRead    int64 // how many bytes were read
	durable    int64
	minDurable int64 // how many bytes were durable when a newer epoch began: at least these must count
	isFixed    bool  // the first record of a newer epoch has fixed its length; nothing more counts
}

func (g *ledger) init() {
	g.table, g.requests = &jobs.Table{}, map[string]int{}
	g.hostSettings, g.seqs = map[string]jobs.HostSetting{}, map[int64]jobs.ID{}
	g.instances = map[string]jobs.InstanceState{}
	g.caused, g.machines, g.hosts = map[string]int{}, map[string]string{}, map[string]jobs.HostRequest{}
	g.byExit = map[int64]bool{}
}

func epochOf(path string) int {
	name := path[strings.LastIndexByte(path, '/')+1:]
	n, _ := strconv.Atoi(strings.TrimSuffix(name, ".jsonl"))
	return n
}

func (g *ledger) file(w *World, epoch int) *journalBytes {
	if g.observer == nil {
		g.observer = w.server.Mount("ledger")
	}
	for len(g.files) < epoch {
		g.files = append(g.files, journalBytes{})
	}
	b := &g.files[epoch-1]
	if b.f == nil {
		if f, err := g.observer.OpenFile(journalPath(epoch), os.O_RDONLY, 0); err == nil {
			b.f = f
		}
	}
	return b
}

// readElsewhere reports whether a dispatcher on another machine has read what l wrote.
func (g *ledger) readElsewhere(l *dispatcher) bool {
	return slices.ContainsFunc(l.w.dispatchers, func(other *dispatcher) bool {
		return other.epoch > l.fileEpoch && l.fileEpoch > 0 && other.m != l.m
	})
}

// forgetLostFiles forgets the files whose directory entries were lost.
func (g *ledger) forgetLostFiles(w *World) {
	for n := len(g.files); n > 0; n-- {
		f, err := g.observer.OpenFile(journalPath(n), os.O_RDONLY, 0)
		if err == nil {
			f.Close()
			return
		}
		if g.files[n-1].durable > 0 {
			w.fail(DurableFactsKept, "the journal of epoch %d is gone", n)
		}
		g.files = g.files[:n-1]
	}
}

func journalPath(epoch int) string {
	return fmt.Sprintf("%s/%s/%06d.jsonl", runDir, rundir.JournalDir, epoch)
}

// newEpoch records that the file of an epoch was created. What is now durable in the older files
// must count, unless an epoch has already fixed their length.
func (g *ledger) newEpoch(w *World, path string) {
	g.file(w, epochOf(path))
	for i := len(g.files) - 2; i >= 0 && !g.hasMarksFile(i+2); i-- {
		if b := &g.files[i]; !b.isFixed {
			b.minDurable = b.durable
		}
	}
}

// hasMarksFile reports whether the marks file of an epoch exists. It fixes the length of all older
// files, even if its dispatcher died before it wrote the first record of its journal file.
func (g *ledger) hasMarksFile(epoch int) bool {
	b, err := rundir.ReadFile(g.observer, strings.TrimSuffix(journalPath(epoch), ".jsonl")+".marks")
	if err != nil {
		return false
	}
	r, n := g.firstRecord(bytes.TrimSuffix(b, []byte{'\n'}))
	return n > 0 && r.Epoch == epoch
}

// recordSynced records that a journal file is durable up to size.
func (g *ledger) recordSynced(l *dispatcher, path string, size int64) {
	w, epoch := l.w, epochOf(path)
	b := g.file(w, epoch)
	b.durable = max(b.durable, size)
	switch {
	case epoch < len(g.files): // the newer epoch decides whether it counts
	case epoch == g.epoch:
		g.read(w, epoch, size)
	default:
		g.readFixedLengths(w, epoch)
		g.read(w, epoch, size)
	}
}

// readFixedLengths reads the lengths that the first record of a new epoch fixes.
func (g *ledger) readFixedLengths(w *World, epoch int) {
	head := w.readJournal(epoch)
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	first, n := g.firstRecord(line)
	if n == 0 || first.Kind != jobs.KindEpoch || first.Epoch != epoch {
		w.fail(JournalFolds, "the first record of epoch %d is %.100q", epoch, line)
	}
	for _, m := range first.Files {
		e := epochOf(m.Name)
		b := g.file(w, e)
		if m.Length < b.minDurable && !w.damaged {
			w.fail(DurableFactsKept, "epoch %d counts %d bytes of the journal of epoch %d, of which %d were durable",
				epoch, m.Length, e, b.minDurable)
		}
		if b.isFixed && m.Length != b.numRead && !w.damaged {
			w.fail(DurableFactsKept, "epoch %d counts %d bytes of the journal of epoch %d, and an earlier one %d",
				epoch, m.Length, e, b.numRead)
		}
		if !b.isFixed && !w.isDamageUnread { // otherwise everything is read again after recovery
			g.read(w, e, m.Length)
		}
		b.isFixed = true
	}
	g.epoch = epoch
}

// read applies the records up to an offset.
func (g *ledger) read(w *World, epoch int, to int64) {
	b := g.file(w, epoch)
	if to <= b.numRead || b.isFixed {
		return
	}
	buf := make([]byte, to-b.numRead)
	if n, err := b.f.ReadAt(buf, b.numRead); n < len(buf) {
		w.fail(DurableFactsKept, "the journal of epoch %d ends before byte %d: %v", epoch, to, err)
	}
	b.numRead = to
	for line := range bytes.Lines(buf) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		for len(line) > 0 {
			r, n := g.firstRecord(line)
			if n == 0 {
				w.fail(JournalFolds, "a durable line of epoch %d is damaged: %.100q", epoch, line)
			}
			line = line[min(n+1, len(line)):] // even if its newline is damaged
			w.applyToLedger(&r)
		}
	}
}

// firstRecord returns the first record of b and its length, which is 0 if there is none.
func (g *ledger) firstRecord(b []byte) (r jobs.Record, n int) {
	if r, ok := g.parseLine(b); ok {
		return r, len(b)
	}
	for n := range b {
		if b[n] == '}' {
			if r, ok := g.parseLine(b[:n+1]); ok {
				return r, n + 1
			}
		}
	}
	return r, 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (g *ledger) parseLine(line []byte) (r jobs.Record, ok bool) {
	if len(line) < 10 || fmt.Sprintf("%08x ", crc32.Checksum(line[9:], castagnoli)) != string(line[:9]) {
		return r, false
	}
	return r, g.dec.Read(line[9:], &r) == nil
}

// readJournal returns all bytes of an epoch's file.
func (w *World) readJournal(epoch int) []byte {
	b := w.ledger.file(w, epoch)
	if b.f == nil {
		return nil
	}
	size, _ := b.f.Size()
	buf := make([]byte, size)
	n, _ := b.f.ReadAt(buf, 0)
	return buf[:n]
}

// shadow folds a durable record into the shadow table.
func (g *ledger) shadow(w *World, r *jobs.Record) {
	if r.Kind == jobs.KindAccepted {
		for len(g.table.Specs) < int(r.Job)+r.Count-1 {
			g.table.Specs = append(g.table.Specs, w.specs[len(g.table.Specs)])
		}
	}
	if err := jobs.Fold(g.table, r); err != nil {
		w.fail(JournalFolds, "%v", err)
	}
	if r.Kind == jobs.KindAccepted {
		for i := range r.Count {
			g.touched = append(g.touched, r.Job+jobs.ID(i))
		}
	} else if r.Job > 0 && !slices.Contains(g.touched, r.Job) {
		g.touched = append(g.touched, r.Job)
	}
}

// truth is what really happened on the hosts, whether or not any dispatcher knows of it.
type truth struct {
	facts   map[jobs.AttemptID]*fact
	live    map[jobs.ID][]jobs.AttemptID
	records int // durable records so far
	sent    map[jobs.AttemptID]*host

	// Jobs with an attempt that succeeded, whether or not a dispatcher knows it.
	finished map[jobs.ID]bool
}

// fact is the true history of an attempt.
type fact struct {
	numStarts int
	isAlive   bool
	host      *host
	since     time.Duration
	// As its supervisor saw it; nil while it runs, or if no supervisor saw it.
	ended     *jobs.Outcome
	forgotten bool // its host lost the last writes of its disk in a power loss
}

func (t *truth) init() {
	t.facts = map[jobs.AttemptID]*fact{}
	t.live = map[jobs.ID][]jobs.AttemptID{}
	t.finished = map[jobs.ID]bool{}
	t.sent = map[jobs.AttemptID]*host{}
}

func (t *truth) factOf(id jobs.AttemptID) *fact { return t.facts[id] }

// recordStart records the start of a job's process.
func (t *truth) recordStart(w *World, r *heldAttempt) {
	id, h := r.spooled.id, r.h
	w.logf("START %s on %s", id, h.name)
	f := t.facts[id]
	if f == nil {
		f = &fact{}
		t.facts[id] = f
	}
	// If the record of the attempt was damaged and its host lost the claim in a power loss, nobody
	// can know that it has started.
	f.numStarts++
	if f.numStarts > 1 && !(w.damaged && f.forgotten) {
		w.fail(StartsOnce, "%s starts again, on %s", id, h.name)
	}
	if w.onlyCuts && t.finished[id.Job] {
		w.fail(OneResult, "%s starts on %s, and its job has succeeded", id, h.name)
	}
	f.isAlive, f.host, f.since = true, h, w.now
	e := w.ledger.entry(id)
	switch {
	case w.damaged && (e == nil || e.isUncertain):
	case e != nil && !w.damaged && e.machine != h.id:
		w.fail(SettledByItsMachine, "%s starts on %s, and is recorded as launched on %s", id, h.id, e.machine)
	case e == nil || e.host != h.name:
		w.fail(RecordBeforeStart, "%s starts on %s", id, h.name)
	case e.spec != nil && !e.spec.Equal(r.spooled.spec):
		w.fail(RunsAsEdited, "%s starts on %s by another specification than the journal has", id, h.name)
	case !e.open && !e.lostRunning:
		w.fail(NoStartAfterEnd, "%s starts on %s and is recorded as %s", id, h.name, e.last)
	}
	if n, most := h.numBusy(), w.maxSlots(h.name); n > most {
		w.fail(SlotsHold, "%s has %d slots busy of %d", h.name, n, most)
	}
	copies := 1
	for _, other := range t.live[id.Job] {
		o, n := w.ledger.entry(other), id.N
		if w.damaged && (e == nil || e.isUncertain || o == nil || o.isUncertain) {
			if e != nil && !e.isUncertain && !w.mayCopy(e.spec) && (o == nil || !o.lost) && w.dispatcher != nil &&
				w.dispatcher.listed[t.facts[other].host] > t.facts[other].since && !t.facts[other].forgotten {
				w.fail(OneLiveAttempt, "%s starts on %s while %s runs, of which its host had told", id, h.name, other)
			}
			continue
		}
		if w.mayCopy(e.spec) {
			if o.lost || e.lost {
				continue
			}
			copies++
			if copies > w.cfg.Copies {
				w.fail(CopiesHold, "%s starts on %s, and %d others run", id, h.name, copies-1)
			}
			continue
		}
		// A second attempt is allowed only if the first had been given up before the second was launched.
		// The claim counts as the start, so the process of the first may start last.
		first, second := o, e
		if other.N > n {
			first, second = e, o
		}
		if !first.lost || first.lostAt > second.launched {
			w.fail(OneLiveAttempt, "%s starts on %s while %s runs on %s", id, h.name, other, o.host)
		}
	}
	t.live[id.Job] = append(t.live[id.Job], id)
	w.passMoment()
}

// recordDeath records the end of the process, whether or not a supervisor notices.
func (t *truth) recordDeath(r *heldAttempt) {
	id := r.spooled.id
	r.h.w.passMoment()
	r.h.w.logf("END %s on %s", id, r.h.name)
	t.facts[id].isAlive = false
	t.live[id.Job] = slices.DeleteFunc(slices.Clone(t.live[id.Job]),
		func(other jobs.AttemptID) bool { return other == id })
}

// recordSeenOutcome records the outcome that the supervisor has seen.
func (t *truth) recordSeenOutcome(r *heldAttempt) {
	o := *r.outcome
	t.facts[r.spooled.id].ended = &o
	t.finished[r.spooled.id.Job] = t.finished[r.spooled.id.Job] || o.OK()
}

// forget records that a host may have lost its claims.
func (t *truth) forget(h *host) {
	for _, f := range t.facts {
		f.forgotten = f.forgotten || f.host == h
	}
}
