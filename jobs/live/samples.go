package live

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// SampleSuffix ends the name of a file hosts/<host>.load, the history of a host. It has a line of
// numbers for each Sample. It is not durable.
const SampleSuffix = ".load"

const (
	sampleInterval = 30 * time.Second // minimum between two samples of a host
	maxSampleGap   = 3 * sampleInterval
	maxSampleBytes = 64 << 10 // of a file; when it is full, every second sample is removed
)

// Sample holds what a host was doing at a time. A file of an earlier version has only At and Load.
type Sample struct {
	At     time.Time // by the dispatcher's clock
	Load   float64   // average over one minute, of the processes of all users
	Slots  int
	Own    int     // slots in use by the run
	Others float64 // slots that are unusable because of others' load
	Mem    int64   // bytes in use, of MemAll
	MemAll int64   // bytes of memory; 0: unknown
	GPUs   float64 // devices that jobs or other programs use, of GPUAll
	GPUAll int
	// Rate is the number of attempts that ended there per minute since the sample before. It is NaN
	// if there is no such sample.
	Rate float64

	ended int // attempts that have ended there under the same dispatcher
}

// newSample returns the sample of a host.
func newSample(at time.Time, h *Host) *Sample {
	s := &Sample{At: at, Load: h.Load[0], Slots: h.Slots, Own: h.Running, GPUs: h.GPUsUsed, GPUAll: h.GPUs,
		ended: h.Done + h.Failed}
	if h.Usable > 0 || h.Hold == jobs.HeldByOthersLoad || h.Hold == jobs.HeldByOtherRuns {
		s.Others = max(0, float64(h.Slots)-max(h.Usable, float64(h.Running)))
	}
	if h.MemBytes > 0 && h.MemFree >= 0 {
		s.Mem, s.MemAll = max(0, h.MemBytes-h.MemFree), h.MemBytes
	}
	return s
}

const mib = 1 << 20 // unit of memory in the file

// numSampleFields is the number of numbers of a line. Later versions may add some.
const numSampleFields = 10

func (s *Sample) appendTo(b []byte) []byte {
	return fmt.Appendf(b, "%d %.2f %d %d %.4g %d %d %.3g %d %d\n", s.At.Unix(), s.Load, s.Slots, s.Own, s.Others,
		s.Mem/mib, s.MemAll/mib, s.GPUs, s.GPUAll, s.ended)
}

// parseSample returns the sample of a line, or false if the line is damaged.
func parseSample(line string) (s Sample, ok bool) {
	var n [numSampleFields]float64
	fields := strings.Fields(line)
	if len(fields) != 2 && len(fields) < len(n) {
		return s, false
	}
	for i := range min(len(n), len(fields)) {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0 && v < 1e12) || i > 0 && v >= 1e9 {
			return s, false
		}
		n[i] = v
	}
	return Sample{At: time.Unix(int64(n[0]), 0), Load: n[1], Slots: int(n[2]), Own: int(n[3]), Others: n[4],
		Mem: int64(n[5]) * mib, MemAll: int64(n[6]) * mib, GPUs: n[7], GPUAll: int(n[8]), ended: int(n[9])}, true
}

// SampleLog records samples of a run's hosts. It is not safe for concurrent use.
type SampleLog struct {
	run *rundir.Run
	at  map[string]time.Time // time of the newest sample of each host
}

// NewSampleLog returns the sample log of a run.
func NewSampleLog(r *rundir.Run) *SampleLog { return &SampleLog{r, map[string]time.Time{}} }

// Record takes a sample of each host that is up and was not sampled for sampleInterval. Samples
// that cannot be written are dropped. Record may block as long as the disk does.
func (l *SampleLog) Record(s *State) {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.State != "up" && h.State != "draining" || s.At.Sub(l.at[h.Name]) < sampleInterval {
			continue
		}
		l.at[h.Name] = s.At
		_ = l.append(h.Name, newSample(s.At, h).appendTo(nil)) // readers show a gap
	}
}

func (l *SampleLog) append(host string, line []byte) error {
	f, err := l.run.Disk.OpenFile(l.run.Path(rundir.HostsDir, host+SampleSuffix), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size+int64(len(line)) > maxSampleBytes {
		text := make([]byte, min(size, maxSampleBytes))
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

// LastHour is the size of the part of a file that has at least the samples of the last hour.
const LastHour = 16 << 10

// ReadSamples is ReadHostSamples for each host that has any samples.
func ReadSamples(r *rundir.Run, maxBytes int64) map[string][]Sample {
	samples := map[string][]Sample{}
	names, _ := r.Disk.Names(r.Path(rundir.HostsDir))
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, SampleSuffix); ok {
			if list := ReadHostSamples(r, host, maxBytes); len(list) > 0 {
				samples[host] = list
			}
		}
	}
	return samples
}

// ReadHostSamples returns the samples of a host in the last maxBytes of its file, oldest first; 0:
// all samples. It ignores samples that cannot be read. It may block as long as the disk does.
func ReadHostSamples(r *rundir.Run, host string, maxBytes int64) (list []Sample) {
	text, size, _ := rundir.ReadPart(r.Disk, r.Path(rundir.HostsDir, host+SampleSuffix), -maxBytes, maxSampleBytes)
	isCut := maxBytes > 0 && size > maxBytes
	for line := range strings.Lines(string(text)) {
		s, ok := parseSample(line)
		if isCut { // a part of a line
			isCut = false
			continue
		}
		if !ok || len(list) > 0 && s.At.Before(list[len(list)-1].At) {
			continue
		}
		s.Rate = math.NaN()
		if len(list) > 0 {
			last := &list[len(list)-1]
			ended := s.ended - last.ended
			if ended < 0 { // another dispatcher counts from zero
				ended = s.ended
			}
			if took := s.At.Sub(last.At); took > 0 {
				s.Rate = float64(ended) / took.Minutes()
			}
		}
		list = append(list, s)
	}
	return list
}

// Means returns the means of a value of samples over n equal parts of the time from begin to end. A
// sample is valid until the next one, but at most for maxSampleGap. A part without a sample, or
// only with samples whose value is NaN, is NaN.
func Means(list []Sample, begin, end time.Time, n int, value func(*Sample) float64) []float64 {
	sums, counts := make([]float64, n), make([]int, n)
	part := func(at time.Time) int { return int(at.Sub(begin) * time.Duration(n) / max(1, end.Sub(begin))) }
	for i := range list {
		s := &list[i]
		until := s.At.Add(maxSampleGap)
		if i+1 < len(list) && list[i+1].At.Before(until) {
			until = list[i+1].At
		}
		v := value(s)
		if math.IsNaN(v) || !until.After(begin) || s.At.After(end) {
			continue
		}
		first := 0
		if s.At.After(begin) {
			first = part(s.At)
		}
		last := n - 1
		if until.Before(end) {
			last = max(first, part(until.Add(-1)))
		}
		for k := min(first, n-1); k <= min(last, n-1); k++ {
			sums[k], counts[k] = sums[k]+v, counts[k]+1
		}
	}
	for k := range sums {
		sums[k] /= float64(counts[k])
		if counts[k] == 0 {
			sums[k] = math.NaN()
		}
	}
	return sums
}
