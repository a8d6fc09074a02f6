package metrics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// MemoryDir, in the run directory, holds what was found in outputs, a file a column, so
// that the next table opens none of them: over NFS that is what a table of many jobs
// costs. It may be removed at any time. Such a file begins with a line that says which
// column it is of, has a line an attempt (17.2, a tab, the value), and ends with the
// CRC-32C of all that.
const MemoryDir = "figures.cache"

const (
	searchVersion = 1               // to be raised when package column finds something else
	settled       = 2 * time.Minute // so long after its end nothing of a job writes any more
	memorable     = 200             // outputs: to remember fewer is not worth a file
	memoryFiles   = 50              // at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// memory is that of one Reader. Loaded before outputs are read, saved after it.
type memory struct {
	disk    rundir.Disk
	dir     string
	loaded  bool
	columns []*remembered // of each column; nil: it stands in a file, which may change
}

// remembered is a column's file.
type remembered struct {
	name string
	head string
	of   map[jobs.AttemptID]string
}

// Remember makes Read use what was found before, and remember what it finds in the
// outputs of jobs that ended a while ago. What it cannot read or write it does without.
func (r *Reader) Remember() {
	r.memory = &memory{disk: r.disk, dir: filepath.Join(r.runDir, MemoryDir)}
}

func (m *memory) load(columns []*Metric) {
	m.loaded = true
	names, err := m.disk.Names(filepath.Dir(m.dir))
	if err == nil && slices.Contains(names, MemoryDir) {
		names, err = m.disk.Names(m.dir)
	} else {
		names = nil
	}
	for _, c := range columns {
		if c.File != "" {
			m.columns = append(m.columns, nil)
			continue
		}
		head, _ := json.Marshal(map[string]any{"v": 1, "search": searchVersion, "column": c.String()})
		sum := crc32.Checksum(head, castagnoli)
		f := &remembered{name: fmt.Sprintf("%08x", sum), head: string(head) + "\n"}
		if err == nil && slices.Contains(names, f.name) {
			f.load(m)
		}
		m.columns = append(m.columns, f)
	}
}

// path is the file of a
func (m *memory) path(f *remembered) string { return filepath.Join(m.dir, f.name) }

func (f *remembered) load(m *memory) {
	b, err := readOwn(m.disk, m.path(f))
	if err != nil {
		return
	}
	text := string(b)
	n := len(text) - len("0badcafe\n")
	if n < 0 || text[n:] != memorySum(text[:n]) || !strings.HasPrefix(text, f.head) {
		return
	}
	f.of = make(map[jobs.AttemptID]string, strings.Count(text, "\n"))
	for line := range strings.Lines(text[len(f.head):n]) {
		name, value, _ := strings.Cut(line[:len(line)-1], "\t")
		if id, err := jobs.ParseAttemptID(name); err == nil {
			f.of[id] = memoryBack.Replace(value)
		}
	}
}

func memorySum(text string) string {
	return fmt.Sprintf("%08x\n", crc32.Checksum([]byte(text), castagnoli))
}

func byAttempt(a, b jobs.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.N, b.N))
}

// A line break within a value does not end its line.
var (
	memoryText = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	memoryBack = strings.NewReplacer(`\\`, "\\", `\n`, "\n")
)

// remembers fills in what is known of an output, and says whether that is all.
func (m *memory) remembers(id jobs.AttemptID, values []string) bool {
	if m == nil {
		return false
	}
	for i, f := range m.columns {
		if f == nil {
			continue
		}
		v, ok := f.of[id]
		if !ok {
			return false // what is filled in by then is found again
		}
		values[i] = v
	}
	return true
}

// learns says that what is found in an output that was last written then may be
// remembered: the clock of its host may be behind.
func (m *memory) learns(res *results.Result, written time.Time) bool {
	return m != nil && res.Ended() != 0 && min(time.Since(res.Ended().Time()), time.Since(written)) > settled
}

// save writes what is new: of at least so many outputs, and a part of all, so that a
// table that is asked for again and again during a run does not write each time. It
// says whether it did.
func (m *memory) save(fresh map[jobs.AttemptID][]string, all int) bool {
	if m == nil || len(fresh) < max(memorable, all/20) {
		return false
	}
	if err := m.disk.Mkdir(m.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	names, err := m.disk.Names(m.dir)
	if err != nil {
		return false
	}
	names = m.makeRoom(names)
	for i, f := range m.columns {
		if f == nil {
			continue
		}
		if !slices.Contains(names, f.name) {
			if len(names) >= memoryFiles {
				continue
			}
			names = append(names, f.name)
		}
		if f.of == nil {
			f.of = make(map[jobs.AttemptID]string, len(fresh))
		}
		for id, values := range fresh {
			f.of[id] = values[i]
		}
		var b bytes.Buffer
		b.WriteString(f.head)
		for _, id := range slices.SortedFunc(maps.Keys(f.of), byAttempt) {
			b.WriteString(id.String() + "\t" + memoryText.Replace(f.of[id]) + "\n")
		}
		b.WriteString(memorySum(b.String()))
		if rundir.Replace(m.disk, m.path(f), b.Bytes()) != nil {
			return false
		}
	}
	return true
}

// memoryName is what files of the memory are called, and those that were not finished.
var memoryName = regexp.MustCompile(`^[0-9a-f]{8}$|^\.[0-9a-f]{8}\.`)

// makeRoom returns the names that are left: when there would be too many, those of the
// columns that are asked for now, and what is not ours.
func (m *memory) makeRoom(names []string) []string {
	own, count := map[string]bool{}, len(names)
	for _, f := range m.columns {
		if f == nil {
			continue
		}
		if own[f.name] = true; !slices.Contains(names, f.name) {
			count++
		}
	}
	if count <= memoryFiles {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return memoryName.MatchString(name) && !own[name] && m.disk.Remove(filepath.Join(m.dir, name)) == nil
	})
}
