package metrics

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// The files of the run directory that hold the metrics found in outputs. They have one line for
// each attempt:
//
//	{"attempt":"17.2","metrics":{"acc=json:test.accuracy":"0.91"},"crc":"0badcafe"}
//
// A metric is keyed by how it was found. A member "bytes" beside "metrics" holds the values that
// are not valid UTF-8, in base64. crc is as in jobs.jsonl. A line with a wrong checksum is ignored.
const (
	// KeptFile holds metrics of outputs that only a host has, because after the run nobody asks
	// that host any more. It is durable.
	KeptFile = "metrics.jsonl"
	// CacheFile holds metrics of the other outputs, so that the next table opens none of them. Over
	// NFS, opening them is most of the cost of a table. It may be removed at any time. Change its
	// name when the program finds other values in the same output.
	CacheFile = "metrics2.cache"
)

const (
	settled    = 2 * time.Minute // after a job's end, none of its processes writes later than this
	worthCache = 200             // number of outputs; fewer are not worth a write
	maxCache   = 256 << 20       // bytes; a larger cache is truncated
)

// store holds metrics by attempt and by how they are found, together with their file. It is safe
// for concurrent use.
type store struct {
	disk      rundir.Disk
	dir, name string

	mu       sync.Mutex
	loaded   bool
	of       map[storeKey]string
	hows     jobs.Numbering[string] // how metrics are found
	fresh    []byte                 // lines that have not been written yet
	numAdded int                    // outputs that were added, written or not
	appended bool                   // lines were written to the file
}

// storeKey is an attempt, and the number of how a metric of it is found. A map for each of a million
// attempts would take several times as much memory.
type storeKey struct {
	attempt jobs.AttemptID
	how     int
}

// storeLine is a line of the file.
type storeLine struct {
	Attempt string            `json:"attempt"`
	Metrics map[string]string `json:"metrics"`
	Bytes   map[string][]byte `json:"bytes,omitempty"` // values that are not valid UTF-8
}

// find fills in the known metrics of an output, and reports whether those are all. A nil store
// knows none.
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
	all := true
	for i, c := range columns {
		if c.File == "" {
			v, ok := s.of[storeKey{id, s.hows.Number(c.String())}]
			values[i], all = v, all && ok
		}
	}
	return all
}

// load reads the file. A file that cannot be read counts as empty.
func (s *store) load() {
	names, err := s.disk.Names(s.dir)
	if err != nil || !slices.Contains(names, s.name) {
		return
	}
	f, err := openOwn(s.disk, s.path(), os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close() // opened only for reading
	text := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.size), 64<<10)
	l := storeLine{Metrics: map[string]string{}}
	for err == nil {
		var line []byte
		line, err = text.ReadBytes('\n')
		body, ok := jobs.SummedLine(bytes.TrimSuffix(line, []byte{'\n'}))
		l.Attempt = ""
		clear(l.Metrics)
		clear(l.Bytes)
		if !ok || json.Unmarshal(body, &l) != nil {
			continue
		}
		if id, err := jobs.ParseAttemptID(l.Attempt); err == nil {
			s.put(id, l.Metrics)
			for how, v := range l.Bytes {
				s.put(id, map[string]string{how: string(v)})
			}
		}
	}
}

func (s *store) path() string { return filepath.Join(s.dir, s.name) }

func (s *store) put(id jobs.AttemptID, metrics map[string]string) {
	for how, v := range metrics {
		jobs.Insert(&s.of, storeKey{id, s.hows.Number(how)}, v)
	}
}

// add records the metrics found in an output. If the whole output was searched, it also records
// which metrics are missing. write stores them in the file.
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
		jobs.Insert(&l.Bytes, how, []byte(v))
		delete(l.Metrics, how)
	}
	body, err := stdjson.Marshal(l)
	if err != nil {
		return // a map of texts cannot fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name == KeptFile { // a cache is asked for an output only once
		s.put(id, found)
	}
	s.fresh = append(append(s.fresh, jobs.AppendLineSum(body[:len(body)-1], 0)...), '\n')
	s.numAdded++
}

// appendMutex prevents two readers of one process from writing at the same place. Two dispatchers
// of one run may do so; the checksums detect it.
var appendMutex sync.Mutex

// write appends the new lines if at least minOutputs outputs were added in all. Lines that cannot be
// written are tried again next time.
func (s *store) write(minOutputs int) error {
	s.mu.Lock()
	fresh := s.fresh
	if len(fresh) == 0 || s.numAdded < minOutputs {
		s.mu.Unlock()
		return nil
	}
	s.fresh = nil
	s.mu.Unlock()
	appendMutex.Lock()
	defer appendMutex.Unlock()
	err := s.appendLines(fresh)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fresh = append(fresh, s.fresh...)
		return fmt.Errorf("metrics of outputs that only their hosts have cannot be kept: %w", err)
	}
	return nil
}

func (s *store) appendLines(fresh []byte) error {
	f, err := openOwn(s.disk, s.path(), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if s.name == CacheFile && f.size > maxCache && !s.appended {
		err, f.size = f.Truncate(0), 0
	}
	if f.size > 0 { // the last line may be torn
		fresh = append([]byte{'\n'}, fresh...)
	}
	if err == nil {
		s.appended = true
		_, err = f.WriteAt(fresh, f.size)
	}
	if err == nil && s.name == KeptFile {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// UseCache makes Read use CacheFile and add what it finds in the outputs of jobs that ended at
// least settled ago. Errors of the cache are ignored. Reader then remembers nothing else from one Read
// to the next.
func (r *Reader) UseCache() { r.cache = &store{disk: r.disk, dir: r.runDir, name: CacheFile} }

// isSettled reports whether an output with this time of its last write will not change any more.
// The clock of its host may be behind.
func isSettled(res *results.Result, written time.Time) bool {
	return res.Ended() != 0 && min(time.Since(res.Ended().Time()), time.Since(written)) > settled
}
