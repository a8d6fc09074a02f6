// Package live defines live.json, in which a dispatcher publishes what the journal does not
// contain: host reports, rates, why launching is held back, and the progress of running jobs. Write
// writes a State, and Read reads it. SampleLog records samples of the hosts in other files.
// docs/reference/live.md documents live.json for scripts.
//
// The file describes the moment State.At. Ages and delays in it are relative to that moment, so a
// reader need not compare clocks. It is never fsynced: after a crash only the journal counts.
package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// MaxBytes bounds the file. Readers refuse a larger one.
const MaxBytes = 4 << 20

// MaxProgress bounds State.Progress. The attempts that reported last are kept.
const MaxProgress = 4096

// State is the content of live.json.
type State struct {
	V     int       `json:"v"`
	Run   string    `json:"run"`   // uid of the run
	Epoch int       `json:"epoch"` // of the dispatcher that wrote it
	Token string    `json:"token"` // of its owner file
	At    time.Time `json:"at"`    // dispatcher's clock

	Durable Durable `json:"durable"`

	More bool `json:"more,omitempty"` // more jobs may come: the input is open
	// Hosts with metrics of earlier jobs that are not stored yet, at most MaxAwaited. No more jobs
	// come, but the run does not end before it has asked them, for half a minute at most.
	MetricsOf []string `json:"metrics_of,omitempty"`
	// Nothing is launched, for a reason of the dispatcher or a person.
	Held     bool   `json:"held,omitempty"`
	Draining string `json:"draining,omitempty"` // why the run drains; "": it does not
	// Why no host starts a job though jobs are ready; follows "nothing can start: ".
	Stuck string `json:"stuck,omitempty"`
	// When the next slot is due for jobs that wait for one; nil: none waits.
	NextSlot *jobs.NextSlot `json:"next_slot,omitempty"`
	Awaited  *Await         `json:"awaited,omitempty"` // silent hosts that attempts wait for; nil: none
	Problem  string         `json:"problem,omitempty"` // why nothing can be recorded; "": all is well
	Deleted  bool           `json:"deleted,omitempty"` // the run directory was deleted or moved
	Finish   *Finish        `json:"finish,omitempty"`  // the dispatcher is ending; nil: it continues
	Tries    int            `json:"tries"`             // attempts of a job that does not set the number
	// Slots of this machine take the shortest job first.
	Hybrid bool `json:"hybrid,omitempty"`

	// Finished jobs per second, without those that never ran, over the last minute.
	Rate float64 `json:"rate"`
	// The same for each ten seconds of the last ten minutes, oldest first.
	Rates []float64     `json:"rates,omitempty"`
	ETA   time.Duration `json:"eta_ns,omitempty"` // until the queue is done; 0: unknown
	// As in ETA ± Spread, in 2 of 3 cases; 0: unknown.
	Spread time.Duration `json:"spread_ns,omitempty"`

	Question *Question `json:"question,omitempty"`
	// The machines on which a standby dispatcher watches, joined by ", ".
	Standby string `json:"standby,omitempty"`

	Hosts      []Host      `json:"hosts"` // in inventory order
	Queues     []Queue     `json:"queues,omitempty"`
	Stragglers jobs.Ranges `json:"stragglers,omitempty"`
	Ending     jobs.Ranges `json:"ending,omitempty"` // running jobs that are being ended
	// DCS_PROGRESS of running attempts, by attempt id.
	Progress map[string]string `json:"progress,omitempty"`
}

// Await describes the silent hosts that open attempts wait for.
type Await struct {
	Hosts []string `json:"hosts"` // at most MaxAwaited
	Text  string   `json:"text"`  // which attempts wait for them, why, and until when
	// The wait has a limit, and a person can end it by stopping the hosts. Otherwise only a requeue
	// of the jobs ends it.
	HasLimit bool `json:"has_limit,omitempty"`
}

// MaxAwaited bounds Await.Hosts, Finish.Hosts, and State.MetricsOf.
const MaxAwaited = 20

// Durable is how much of the journal is durable and not fenced off. Readers fold no
// further while the dispatcher is alive.
type Durable struct {
	Epoch int   `json:"epoch"` // of the journal file
	Bytes int64 `json:"bytes"`
}

// Finish describes how a dispatcher ends.
type Finish struct {
	How string `json:"how"` // done, drained, stopped, no_hosts, fenced
	Why string `json:"why,omitempty"`
	// The hosts that have not finished with the run, at most MaxAwaited, and what they do, as in "waiting for
	// TEXT"; none: there is nothing to wait for.
	Hosts []string `json:"hosts,omitempty"`
	Text  string   `json:"text,omitempty"`
}

// Waiting returns the text about the hosts that the dispatcher waits for, or "".
func (f *Finish) Waiting() string {
	if f == nil {
		return ""
	}
	return f.Text
}

// Question is what the dispatcher asks a person, such as the passphrase of a key. The
// answer goes through the socket, never through a file.
type Question struct {
	ID     int64  `json:"id"`
	Text   string `json:"text"`
	Secret bool   `json:"secret,omitempty"` // the answer is not echoed
}

// Queue describes how long the jobs of a queue have taken.
type Queue struct {
	Name      string        `json:"name"`
	Mean      time.Duration `json:"mean_ns"`
	Deviation time.Duration `json:"deviation_ns"`
}

// Host is the dispatcher's view of a host. Ages and waits are relative to State.At.
type Host struct {
	Name string `json:"name"`
	jobs.HostStatus
	Linked  bool   `json:"linked,omitempty"` // its helper responds
	Stopped bool   `json:"stopped,omitempty"`
	Note    string `json:"note,omitempty"` // the last message about it
	Slots   int    `json:"slots"`
	Given   int    `json:"given,omitempty"` // slots that a person set; 0: its rule applies
	// Slots less other users' load; 0: it takes no new jobs.
	Usable   float64 `json:"usable"`
	Running  int     `json:"running"` // slots in use
	Buffered int     `json:"buffered,omitempty"`
	Done     int     `json:"done,omitempty"` // attempts that succeeded there
	// Attempts that failed there, without those that were ended on request or asked to be run later.
	Failed int `json:"failed,omitempty"`

	Cores    int        `json:"cores,omitempty"` // 0: unknown
	GPUs     int        `json:"gpus,omitempty"`
	GPUsUsed float64    `json:"gpus_used,omitempty"` // by any job or program, with parts
	Load     [3]float64 `json:"load"`
	Busy     float64    `json:"busy"` // cores, of all users
	Ours     float64    `json:"ours"` // cores, of our jobs
	MemBytes int64      `json:"mem,omitempty"`
	MemFree  int64      `json:"mem_free,omitempty"`
	DiskFree int64      `json:"disk_free"` // -1: unknown
	// Response time of the file system that holds the attempts.
	FSDelay time.Duration `json:"fs_delay_ns,omitempty"`
	Delay   time.Duration `json:"delay_ns,omitempty"` // round trip of the link; 0: not measured

	Users string `json:"users,omitempty"` // who uses its slots, in words
	// Sent or fetched now, in words: sizes, rate, problem.
	Files     string        `json:"files,omitempty"`
	Heartbeat time.Duration `json:"heartbeat_ns,omitempty"` // age of the last heartbeat; 0: never
	Down      time.Duration `json:"down_ns,omitempty"`      // time since it was up; 0: it is up
	// Idle time of an instance of a provider; 0: it is not idle.
	Idle time.Duration `json:"idle_ns,omitempty"`
	// Until the next connection attempt; 0: none is planned.
	RetryIn time.Duration `json:"retry_in_ns,omitempty"`
	// History is the share of slots in use over the last five minutes, from 0 to 100, in one sample
	// every five seconds, oldest first. 255 means that the host was not up. JSON encodes it in
	// base64.
	History []uint8 `json:"history,omitempty"`
}

// Write replaces live.json of the run with s. Readers always see a complete file. Its mode is 0600,
// and it is not durable. Write may block as long as the disk does. If check is not nil, Write calls
// it when the new content is on the disk. If check returns an error, Write does not replace the file
// and returns the error.
func Write(r *rundir.Run, s *State, check func() error) error {
	b, err := encode(s)
	if err == nil {
		// Only one dispatcher has the epoch, so nobody else writes to this file.
		tmp := r.Path(fmt.Sprintf(".%s.%d", rundir.LiveFile, s.Epoch))
		err = rundir.ReplaceVolatile(r.Disk, r.Path(rundir.LiveFile), tmp, b, check)
	}
	if err != nil {
		return fmt.Errorf("write %s of the run %s: %w", rundir.LiveFile, r.Name(), err)
	}
	return nil
}

// Read returns the content of live.json, or nil if there is none. It is an error if the file is not
// the user's, is larger than MaxBytes, has another version, or is damaged. The caller must ignore a
// State whose Epoch and Token differ from those of the owner file.
func Read(r *rundir.Run) (*State, error) {
	b, err := r.ReadPrivate(rundir.LiveFile, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of the run %s: %w", rundir.LiveFile, r.Name(), err)
	}
	s, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.Path(rundir.LiveFile), err)
	}
	return s, nil
}

// encode encodes a State. If the file would be too large, it leaves out the least important parts.
func encode(s *State) ([]byte, error) {
	b, err := marshal(s)
	if err != nil || len(b) <= MaxBytes {
		return b, err
	}
	short := *s
	short.Progress, short.Hosts = nil, append([]Host(nil), s.Hosts...)
	for i := range short.Hosts {
		short.Hosts[i].History, short.Hosts[i].Note = nil, ""
	}
	if b, err = marshal(&short); err == nil && len(b) > MaxBytes {
		err = fmt.Errorf("it would have %d bytes, more than %d", len(b), MaxBytes)
	}
	return b, err
}

func marshal(s *State) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return b.Bytes(), err
}

// decode reads and checks a State.
func decode(b []byte) (*State, error) {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, err
	}
	if err := jobs.FormatLive.Check(version.V); err != nil {
		return nil, err
	}
	s := new(State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	if s.Epoch < 1 || s.Durable.Epoch < 0 || s.Durable.Epoch > s.Epoch || s.Durable.Bytes < 0 {
		return nil, fmt.Errorf("epoch %d with %d durable bytes of epoch %d is inconsistent", s.Epoch,
			s.Durable.Bytes, s.Durable.Epoch)
	}
	return s, nil
}
