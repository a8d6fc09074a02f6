package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// Keeper reads metrics of outputs that only a host has, as its jobs end, so that they
// are kept (KeptFile) when nobody can ask the host any more. It reads nothing else.
// Make one with NewKeeper; nil keeps nothing. Its methods may be called from any goroutine.
type Keeper struct {
	reader *Reader
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	added   map[jobs.AttemptID]struct{} // a resume gives some results twice
	waiting []results.Result
	working chan struct{} // closed when the goroutine has nothing to do; nil: there is none
	lacking []results.Result
	closed  bool
}

// NewKeeper makes a Keeper; r.Fetch must be set, and r is the Keeper's from now on.
func NewKeeper(r *Reader) *Keeper {
	k := &Keeper{reader: r, added: map[jobs.AttemptID]struct{}{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Add gives the Keeper a result, and does not wait. What comes after Close is left to
// the next dispatcher, as is what Close could not read.
func (k *Keeper) Add(res *results.Result) {
	if k == nil || !k.reader.stdout || res.Stdout == "" || !k.reader.remote(res) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, twice := k.added[res.Attempt]; twice || k.closed {
		return
	}
	k.added[res.Attempt] = struct{}{}
	k.waiting = append(k.waiting, *res)
	k.begin()
}

// begin has what waits read. The caller holds mu.
func (k *Keeper) begin() {
	if len(k.waiting) > 0 && k.working == nil && k.ctx.Err() == nil {
		k.working = make(chan struct{})
		go k.work()
	}
}

// Lacking waits until all has been read that can be, or ctx is done, and returns the
// hosts that have not given what they have.
func (k *Keeper) Lacking(ctx context.Context) (names []string) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	working := k.working
	k.mu.Unlock()
	if working != nil {
		select {
		case <-working:
		case <-ctx.Done():
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, res := range k.lacking {
		if !slices.Contains(names, res.Host) {
			names = append(names, res.Host)
		}
	}
	return names
}

// Again tries once more what could not be read.
func (k *Keeper) Again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.waiting, k.lacking = append(k.waiting, k.lacking...), nil
	k.begin()
}

// work reads what waits, until nothing does.
func (k *Keeper) work() {
	for {
		k.mu.Lock()
		if len(k.waiting) == 0 || k.ctx.Err() != nil {
			close(k.working)
			k.working = nil
			k.mu.Unlock()
			return
		}
		list := k.waiting
		k.waiting = nil
		k.mu.Unlock()
		_, err := k.reader.Read(k.ctx, list, nil)
		k.mu.Lock()
		for _, res := range list {
			if _, ok := k.reader.known[res.Attempt]; !ok || err != nil {
				k.lacking = append(k.lacking, res)
			}
		}
		k.mu.Unlock()
	}
}

// Close tries once more what could not be read, waits until all is read or ctx is done,
// and returns sentences about what is not kept.
func (k *Keeper) Close(ctx context.Context) (notes []string) {
	if k == nil {
		return nil
	}
	defer k.stop()
	k.mu.Lock()
	working := k.working
	k.closed = true
	k.mu.Unlock()
	if working != nil {
		select {
		case <-working:
		case <-ctx.Done():
			k.stop()
			<-working
		}
	}
	k.mu.Lock()
	list := append(k.lacking, k.waiting...)
	k.lacking, k.waiting = nil, nil
	k.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	f, err := k.reader.Read(ctx, list, nil)
	if err != nil {
		return []string{"the metrics of " + jobs.Plural(len(list), "job") + " are not all kept: the hosts that have the outputs did not answer in time"}
	}
	return f.Notes
}

// KeptFile, in the run directory, holds metrics that were found in outputs which only a
// host has: once the run is over nobody asks that host. A line an attempt,
//
//	{"attempt":"17.2","figures":{"acc=json:test.accuracy":"0.91"},"crc":"0badcafe"}
//
// keyed by how it was found; a member "bytes" beside "figures" has in base64 what is no
// UTF-8, and crc is as in jobs.jsonl. A line that does not fit is as good as none.
const KeptFile = "figures.jsonl"

// kept are the metrics of KeptFile, by attempt and by how they are found. Safe for
// concurrent use.
type kept struct {
	disk rundir.Disk
	dir  string // of the run

	mu     sync.Mutex
	loaded bool
	of     map[jobs.AttemptID]map[string]string
	fresh  []byte // lines that are not written yet
}

// keptLine is a line of the file.
type keptLine struct {
	Attempt string            `json:"attempt"`
	Metrics map[string]string `json:"figures"`
	Bytes   map[string][]byte `json:"bytes,omitempty"` // those that are no UTF-8
}

func (l keptLine) encoded() keptLine {
	for how, v := range l.Metrics {
		if utf8.ValidString(v) {
			continue
		}
		if l.Bytes == nil {
			l.Metrics, l.Bytes = maps.Clone(l.Metrics), map[string][]byte{}
		}
		l.Bytes[how] = []byte(v)
		delete(l.Metrics, how)
	}
	return l
}

func (l keptLine) decoded() map[string]string {
	if l.Metrics == nil {
		l.Metrics = map[string]string{}
	}
	for how, v := range l.Bytes {
		l.Metrics[how] = string(v)
	}
	return l.Metrics
}

// keptOf fills in what is known of a remote output, and says whether that is everything.
func (w *worker) keptOf(res *results.Result, values []string) bool {
	k := w.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.loaded {
		k.loaded = true
		k.load()
	}
	of, all := k.of[res.Attempt], true
	for i, c := range w.columns {
		if c.File == "" {
			v, ok := of[c.String()]
			values[i], all = v, all && ok
		}
	}
	return all
}

// load reads the file. One that is not there, or cannot be read, holds nothing: what it
// lacks is found out, or told, as if there were none.
func (k *kept) load() {
	k.of = map[jobs.AttemptID]map[string]string{}
	names, err := k.disk.Names(k.dir)
	if err != nil || !slices.Contains(names, KeptFile) {
		return
	}
	text, err := readOwn(k.disk, k.path())
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		body, ok := jobs.SummedLine(bytes.TrimSuffix(line, []byte{'\n'}))
		var l keptLine
		if !ok || json.Unmarshal(body, &l) != nil {
			continue
		}
		if id, err := jobs.ParseAttemptID(l.Attempt); err == nil {
			k.put(id, l.decoded())
		}
	}
}

func (k *kept) path() string { return k.dir + "/" + KeptFile }

func (k *kept) put(id jobs.AttemptID, metrics map[string]string) {
	if k.of[id] == nil {
		k.of[id] = metrics
		return
	}
	for how, v := range metrics {
		k.of[id][how] = v
	}
}

// keep notes what was found in a remote output, and what is not in the whole of it;
// write puts it into the file.
func (w *worker) keep(res *results.Result, values []string, whole bool) {
	l := keptLine{Attempt: res.Attempt.String(), Metrics: map[string]string{}}
	for i, c := range w.columns {
		if c.File == "" && (whole || values[i] != "") {
			l.Metrics[c.String()] = values[i]
		}
	}
	body, err := json.Marshal(l.encoded())
	if err != nil {
		return // texts alone: it cannot fail
	}
	w.kept.mu.Lock()
	defer w.kept.mu.Unlock()
	w.kept.put(res.Attempt, l.Metrics)
	w.kept.fresh = append(append(w.kept.fresh, jobs.AppendLineSum(body[:len(body)-1], 0)...), '\n')
}

// appending keeps two readers of one process from writing at one place. Two
// dispatchers of one run may; the checksums find that out.
var appending sync.Mutex

// write appends what is fresh. What could not be written is tried again the next time.
func (k *kept) write() error {
	k.mu.Lock()
	fresh := k.fresh
	k.fresh = nil
	k.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	appending.Lock()
	defer appending.Unlock()
	err := k.appendTo(fresh)
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fresh = append(fresh, k.fresh...)
		return fmt.Errorf("metrics of outputs that only their hosts have cannot be kept: %w", err)
	}
	return nil
}

func (k *kept) appendTo(fresh []byte) error {
	f, err := openOwn(k.disk, k.path(), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if f.size > 0 { // the last line may have been torn
		fresh = append([]byte{'\n'}, fresh...)
	}
	if _, err = f.WriteAt(fresh, f.size); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
