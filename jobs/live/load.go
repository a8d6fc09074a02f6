package live

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dcs-tui/jobs/rundir"
)

// LoadSuffix ends the name of a file hosts/<host>.load. It has a line for each sample of the
// load average of the host over a minute: seconds since 1970, by the dispatcher's clock, a
// blank, and the load. It is not durable.
const LoadSuffix = ".load"

const (
	loadInterval = 30 * time.Second // minimum between two samples of a host
	maxLoadBytes = 64 << 10         // of a file; when it is full, every second sample is removed
)

// LoadSample is one load average of a host. It includes the processes of all users.
type LoadSample struct {
	At   time.Time
	Load float64
}

// LoadLog records the load averages of a run's hosts. It is not safe for concurrent use.
type LoadLog struct {
	run *rundir.Run
	at  map[string]time.Time // time of the newest sample of each host
}

// NewLoadLog returns the load log of a run.
func NewLoadLog(r *rundir.Run) *LoadLog { return &LoadLog{r, map[string]time.Time{}} }

// Record takes a sample of each host that is up and was not sampled for loadInterval. Samples that
// cannot be written are dropped. Record may block as long as the disk does.
func (l *LoadLog) Record(s *State) {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.State != "up" && h.State != "draining" || s.At.Sub(l.at[h.Name]) < loadInterval {
			continue
		}
		l.at[h.Name] = s.At
		// A report shows a gap.
		_ = l.append(h.Name, fmt.Appendf(nil, "%d %.2f\n", s.At.Unix(), h.Load[0]))
	}
}

func (l *LoadLog) append(host string, line []byte) error {
	f, err := l.run.Disk.OpenFile(l.run.Path(rundir.HostsDir, host+LoadSuffix),
		os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size+int64(len(line)) > maxLoadBytes {
		text := make([]byte, min(size, maxLoadBytes))
		_, err = f.ReadAt(text, 0)
		line, size = append(everySecondLine(text), line...), 0
		err = errors.Join(err, f.Truncate(0))
	}
	if err == nil {
		_, err = f.WriteAt(line, size)
	}
	return errors.Join(err, f.Close())
}

// everySecondLine returns every second line.
func everySecondLine(text []byte) (rest []byte) {
	keep := true
	for line := range bytes.Lines(text) {
		if keep {
			rest = append(rest, line...)
		}
		keep = !keep
	}
	return rest
}

// ReadLoads returns the samples of each host that has any, oldest first. It ignores samples that
// cannot be read.
func ReadLoads(r *rundir.Run) map[string][]LoadSample {
	loads := map[string][]LoadSample{}
	names, _ := r.Disk.Names(r.Path(rundir.HostsDir))
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, LoadSuffix); ok {
			if list := readLoad(r, name); len(list) > 0 {
				loads[host] = list
			}
		}
	}
	return loads
}

func readLoad(r *rundir.Run, name string) (list []LoadSample) {
	text, _, _ := rundir.ReadPart(r.Disk, r.Path(rundir.HostsDir, name), 0, maxLoadBytes)
	for line := range strings.Lines(string(text)) {
		first, second, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		at, err1 := strconv.ParseInt(first, 10, 64)
		load, err2 := strconv.ParseFloat(second, 64)
		if err1 == nil && err2 == nil && load >= 0 && load < 1e6 &&
			(len(list) == 0 || at >= list[len(list)-1].At.Unix()) {
			list = append(list, LoadSample{time.Unix(at, 0), load})
		}
	}
	return list
}
