package sim

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// The files of attempts, as hosts make and read them: real claims, real sentinels.

// claim makes the claim of an attempt, or its tombstone; fs.ErrExist if there is one.
func (h *host) claim(id jobs.AttemptID, tombstone bool) error {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileClaim), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c := attempts.Claim{Tombstone: tombstone, Run: runUID, Attempt: id, Host: h.spec.Name, By: "1.1.1", Boot: h.bootID(), At: h.stamp()}
	_, err = f.WriteAt(c.Append(nil), 0)
	return errors.Join(err, f.Close())
}

// bury makes a claim of ours a tombstone.
func (h *host) bury(id jobs.AttemptID) {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileClaim), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	c := attempts.Claim{Tombstone: true, Run: runUID, Attempt: id, Host: h.spec.Name, By: "1.1.1", Boot: h.bootID(), At: h.stamp()}
	_, _ = f.WriteAt(c.Append(nil), 0)
}

func (h *host) writeSentinel(id jobs.AttemptID, b []byte) {
	path := jobs.AttemptFile(h.dir, id, jobs.FileReserved)
	f, err := h.disk.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		if _, err = f.WriteAt(b, 0); err == nil && h.shared {
			err = f.Sync() // on a local disk it may be lost with the power: then nothing is known
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = h.disk.Rename(path, jobs.AttemptFile(h.dir, id, jobs.FileExit))
	}
	if err != nil {
		panic(err) // the simulated disk fails only where it is told to
	}
}

// settle writes the sentinels that wait in the spool to where they belong.
func (h *host) settle() {
	if h.w.now < h.sealed || !h.answers() {
		return
	}
	for _, d := range h.done {
		h.writeSentinel(d.id, d.sentinel)
	}
	h.done = nil
}

// sentinel looks for an outcome, where it belongs and in the spool.
func (h *host) sentinel(id jobs.AttemptID) (o jobs.Outcome, slot int, ok bool) {
	try := func(b []byte) bool {
		var err error
		o, _, slot, err = jobs.DecodeSentinel(b, runUID, id)
		return err == nil
	}
	if b, err := rundir.ReadFile(h.disk, jobs.AttemptFile(h.dir, id, jobs.FileExit)); err == nil && try(b) {
		return o, slot, true
	}
	for _, d := range h.done {
		if d.id == id && try(d.sentinel) {
			return o, slot, true
		}
	}
	return o, 0, false
}

// readClaim reads the claim, or makes it as a tombstone when there is none.
func (h *host) readClaim(id jobs.AttemptID) (c attempts.Claim, whole bool) {
	path := jobs.AttemptFile(h.dir, id, jobs.FileClaim)
	b, err := rundir.ReadFile(h.disk, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = h.claim(id, true); err == nil {
			b, err = rundir.ReadFile(h.disk, path)
		}
	}
	if err != nil {
		return c, false
	}
	c, err = attempts.ParseClaim(b)
	return c, err == nil
}

// claimed says that the host has made a claim or a tombstone, and makes none.
func (h *host) claimed(id jobs.AttemptID) bool {
	b, err := rundir.ReadFile(h.disk, jobs.AttemptFile(h.dir, id, jobs.FileClaim))
	if err != nil {
		return false
	}
	c, err := attempts.ParseClaim(b)
	return err == nil && c.Host == h.spec.Name
}

// touch writes the beat file, as supervisors do every 10 s while they run jobs.
func (h *host) touch() {
	w := h.w
	if w.now < h.beat+10*time.Second && h.beat > 0 {
		return
	}
	h.beat = w.now
	if h.answers() && w.now >= h.sealed {
		if f, err := h.disk.OpenFile(attempts.BeatFile(h.dir, h.spec.Name), os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
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
