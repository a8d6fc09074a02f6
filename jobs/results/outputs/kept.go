package outputs

import (
	"bytes"
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

// KeptFile, in the run directory, holds figures that were found in outputs which only a
// host has: once the run is over nobody asks that host. A line an attempt,
//
//	{"attempt":"17.2","figures":{"acc=json:test.accuracy":"0.91"},"crc":"0badcafe"}
//
// keyed by how it was found; a member "bytes" beside "figures" has in base64 what is no
// UTF-8, and crc is as in jobs.jsonl. A line that does not fit is as good as none.
const KeptFile = "figures.jsonl"

// kept are the figures of KeptFile, by attempt and by how they are found. Safe for
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
	Figures map[string]string `json:"figures"`
	Bytes   map[string][]byte `json:"bytes,omitempty"` // those that are no UTF-8
}

func (l keptLine) encoded() keptLine {
	for how, v := range l.Figures {
		if utf8.ValidString(v) {
			continue
		}
		if l.Bytes == nil {
			l.Figures, l.Bytes = maps.Clone(l.Figures), map[string][]byte{}
		}
		l.Bytes[how] = []byte(v)
		delete(l.Figures, how)
	}
	return l
}

func (l keptLine) decoded() map[string]string {
	if l.Figures == nil {
		l.Figures = map[string]string{}
	}
	for how, v := range l.Bytes {
		l.Figures[how] = string(v)
	}
	return l.Figures
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

func (k *kept) put(id jobs.AttemptID, figures map[string]string) {
	if k.of[id] == nil {
		k.of[id] = figures
		return
	}
	for how, v := range figures {
		k.of[id][how] = v
	}
}

// keep notes what was found in a remote output, and what is not in the whole of it;
// write puts it into the file.
func (w *worker) keep(res *results.Result, values []string, whole bool) {
	l := keptLine{Attempt: res.Attempt.String(), Figures: map[string]string{}}
	for i, c := range w.columns {
		if c.File == "" && (whole || values[i] != "") {
			l.Figures[c.String()] = values[i]
		}
	}
	body, err := json.Marshal(l.encoded())
	if err != nil {
		return // texts alone: it cannot fail
	}
	w.kept.mu.Lock()
	defer w.kept.mu.Unlock()
	w.kept.put(res.Attempt, l.Figures)
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
		return fmt.Errorf("figures of outputs that only their hosts have cannot be kept: %w", err)
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
