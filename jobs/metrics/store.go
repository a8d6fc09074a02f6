package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// The files of the run directory that hold metrics that were found in outputs. A line an
// attempt,
//
//	{"attempt":"17.2","figures":{"acc=json:test.accuracy":"0.91"},"crc":"0badcafe"}
//
// keyed by how it was found; a member "bytes" beside "figures" has in base64 what is no
// UTF-8, and crc is as in jobs.jsonl. A line that does not fit is almost none.
const (
	// KeptFile is of outputs which only a host has: once the run is over nobody asks that
	// host. It is durable.
	KeptFile = "figures.jsonl"
	// CacheFile is of the other outputs, so that the next table opens none of them: over NFS
	// that is what a table of many jobs costs. It may be removed at any time. To be renamed
	// when something else would be found in an output.
	CacheFile = "figures.cache"
)

const (
	settled    = 2 * time.Minute // after its end, until no process of a job writes any more
	worthCache = 200             // outputs; fewer are not worth a write
	maxCache   = 256 << 20       // bytes; a larger cache is truncated
)

// store holds metrics by attempt and by how they are found, and the file that they are in. It
// is safe for concurrent use.
type store struct {
	disk      rundir.Disk
	dir, name string

	mu       sync.Mutex
	loaded   bool
	of       map[jobs.AttemptID]map[string]string
	fresh    []byte // lines that are not written yet
	numFresh int
}

// storeLine is a line of the file.
type storeLine struct {
	Attempt string            `json:"attempt"`
	Metrics map[string]string `json:"figures"`
	Bytes   map[string][]byte `json:"bytes,omitempty"` // those that are no UTF-8
}

// find fills in what is known of an output, and reports whether that is everything. A nil
// store knows nothing.
func (s *store) find(id jobs.AttemptID, columns []*Metric, values []string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		s.loaded = true
		s.load()
	}
	of, all := s.of[id], true
	for i, c := range columns {
		if c.File == "" {
			v, ok := of[c.String()]
			values[i], all = v, all && ok
		}
	}
	return all
}

// load reads the file. A file that cannot be read counts as empty.
func (s *store) load() {
	s.of = map[jobs.AttemptID]map[string]string{}
	names, err := s.disk.Names(s.dir)
	if err != nil || !slices.Contains(names, s.name) {
		return
	}
	text, err := readOwn(s.disk, s.path())
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		body, ok := jobs.SummedLine(bytes.TrimSuffix(line, []byte{'\n'}))
		var l storeLine
		if !ok || json.Unmarshal(body, &l) != nil {
			continue
		}
		if id, err := jobs.ParseAttemptID(l.Attempt); err == nil {
			if l.Metrics == nil {
				l.Metrics = map[string]string{}
			}
			for how, v := range l.Bytes {
				l.Metrics[how] = string(v)
			}
			s.put(id, l.Metrics)
		}
	}
}

func (s *store) path() string { return filepath.Join(s.dir, s.name) }

func (s *store) put(id jobs.AttemptID, metrics map[string]string) {
	if s.of[id] == nil {
		s.of[id] = metrics
		return
	}
	maps.Copy(s.of[id], metrics)
}

// add records what was found in an output, and, if all of it was searched, what is not in it;
// write puts it into the file.
func (s *store) add(id jobs.AttemptID, columns []*Metric, values []string, whole bool) {
	l := storeLine{Attempt: id.String(), Metrics: map[string]string{}}
	for i, c := range columns {
		if c.File == "" && (whole || values[i] != "") {
			l.Metrics[c.String()] = values[i]
		}
	}
	found := maps.Clone(l.Metrics)
	for how, v := range found {
		if utf8.ValidString(v) {
			continue
		}
		if l.Bytes == nil {
			l.Bytes = map[string][]byte{}
		}
		l.Bytes[how] = []byte(v)
		delete(l.Metrics, how)
	}
	body, err := json.Marshal(l)
	if err != nil {
		return // texts alone: it cannot fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(id, found)
	s.fresh = append(append(s.fresh, jobs.AppendLineSum(body[:len(body)-1], 0)...), '\n')
	s.numFresh++
}

// appending prevents two readers of one process from writing at the same place. Two dispatchers
// of one run may do so; the checksums detect it.
var appending sync.Mutex

// write appends what is fresh, if it is from at least so many outputs. What could not be written
// is tried again the next time.
func (s *store) write(least int) error {
	s.mu.Lock()
	fresh, n := s.fresh, s.numFresh
	if n == 0 || n < least {
		s.mu.Unlock()
		return nil
	}
	s.fresh, s.numFresh = nil, 0
	s.mu.Unlock()
	appending.Lock()
	defer appending.Unlock()
	err := s.appendLines(fresh)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fresh, s.numFresh = append(fresh, s.fresh...), n+s.numFresh
		return fmt.Errorf("metrics of outputs that only their hosts have cannot be kept: %w", err)
	}
	return nil
}

func (s *store) appendLines(fresh []byte) error {
	f, err := openOwn(s.disk, s.path(), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if s.name == CacheFile && f.size > maxCache {
		err, f.size = f.Truncate(0), 0
	}
	if f.size > 0 { // the last line may have been torn
		fresh = append([]byte{'\n'}, fresh...)
	}
	if err == nil {
		_, err = f.WriteAt(fresh, f.size)
	}
	if err == nil && s.name == KeptFile {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Cache makes Read use CacheFile, and add what it finds in the outputs of jobs that ended a while
// ago. Errors of the cache are ignored.
func (r *Reader) Cache() { r.cache = &store{disk: r.disk, dir: r.runDir, name: CacheFile} }

// isSettled reports whether an output that was last written at a time will not change any more.
// The clock of its host may be behind.
func isSettled(res *results.Result, written time.Time) bool {
	return res.Ended() != 0 && min(time.Since(res.Ended().Time()), time.Since(written)) > settled
}
