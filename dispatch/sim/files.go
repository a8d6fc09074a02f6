package sim

import (
	"errors"
	"os"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// The files of attempts, as hosts make and read them: real status files.

func (h *host) token(id jobs.AttemptID, tombstone bool) *attempts.Claim {
	return &attempts.Claim{Tombstone: tombstone, Run: runUID, Attempt: id, Host: h.name, By: "1.1.1", Boot: h.bootID(), At: h.stamp()}
}

// claim creates the status file of an attempt, with the claim or a tombstone and the bytes
// that are reserved for the outcome; fs.ErrExist if there is one.
func (h *host) claim(id jobs.AttemptID, tombstone bool) error {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return h.writeTo(f, h.token(id, tombstone).Encode(), 0)
}

// writeTo writes b at off and closes f.
func (h *host) writeTo(f rundir.File, b []byte, off int64) error {
	_, err := f.WriteAt(b, off)
	if err == nil && h.shared {
		err = f.Sync() // on a local disk it may be lost with the power: then nothing is known
	}
	return errors.Join(err, f.Close())
}

// bury makes a claim of ours a tombstone.
func (h *host) bury(id jobs.AttemptID) {
	if f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), os.O_WRONLY, 0); err == nil {
		_ = h.writeTo(f, h.token(id, true).Encode(), 0)
	}
}

// writeSentinel fills the reserved bytes of a status file.
func (h *host) writeSentinel(r *run) {
	h.writeStatus(r.s.id, os.O_WRONLY, h.token(r.s.id, false).Sentinel(r.slot, *r.outcome), attempts.SentinelAt)
}

func (h *host) writeStatus(id jobs.AttemptID, flag int, b []byte, off int64) {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), flag, 0o600)
	if err == nil {
		err = h.writeTo(f, b, off)
	}
	if err != nil {
		panic(err) // the simulated disk fails only where it is told to
	}
}

// settle writes the status files that wait in the spool to where they belong.
func (h *host) settle() {
	if h.w.now < h.sealed || !h.answers() {
		return
	}
	for _, d := range h.done {
		h.writeStatus(d.id, os.O_WRONLY|os.O_CREATE, d.status, 0)
	}
	h.done = nil
}

// look returns what the files of an attempt say, where they belong and in the spool.
func (h *host) look(id jobs.AttemptID) (f attempts.Fate, err error) {
	b, err := rundir.ReadFile(h.disk, jobs.AttemptFile(h.dir, id, jobs.FileStatus))
	if f.Attempt = id; err == nil {
		f = attempts.Decode(b, runUID, id)
	}
	for _, d := range h.done {
		if d.id == id && f.State != attempts.Finished {
			f, err = attempts.Decode(d.status, runUID, id), nil
		}
	}
	return f, err
}

// tombstone creates the status file of an attempt that can then never start, and returns
// what it says.
func (h *host) tombstone(id jobs.AttemptID) attempts.Fate {
	if err := h.claim(id, true); err != nil {
		return attempts.Fate{Attempt: id, State: attempts.Unreadable}
	}
	f, _ := h.look(id)
	return f
}

// claimed reports whether the host has made a claim or a tombstone, and makes none.
func (h *host) claimed(id jobs.AttemptID) bool {
	f, err := h.look(id)
	return err == nil && f.Claim.Host == h.name
}

// touch writes the beat file, as supervisors do every 10 s while they run jobs.
func (h *host) touch() {
	w := h.w
	if w.now < h.beat+10*time.Second && h.beat > 0 {
		return
	}
	h.beat = w.now
	if h.answers() && w.now >= h.sealed {
		if f, err := h.disk.OpenFile(attempts.BeatFile(h.dir, h.name), os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			_, _ = f.WriteAt([]byte(strings.Repeat("0", 9)+h.beat.String()+" "+h.bootID()+"\n"), 0)
			f.Close()
		}
	}
	boot := h.boot
	w.after(10*time.Second, func() {
		if h.boot != boot {
			return
		}
		for _, r := range h.runs {
			if r.sup {
				h.touch()
				return
			}
		}
	})
}
