package dispatch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

// Files describes the files that are sent to hosts with jobs, and returned. The zero value sends
// and returns nothing.
type Files struct {
	Source    *files.Source // nil: no job sends or returns files
	BaseDir   string        // directory here to which the paths of jobs are relative
	RecordDir string        // directory for the records of files.Place
	Send      []string      // files that every job gets
	Return    []string      // patterns of files that every job returns
	// Protected are the files and directories of this machine that no job may replace; see
	// files.Placement.
	Protected []string
	// IsUsed reports whether some jobs send or return files. If so, the directory in which other
	// jobs run need not exist on a host.
	IsUsed bool
}

// launch adds the information about files to a launch.
func (f *Files) launch(j *hosts.LaunchJob, s *jobs.Spec) {
	if f.Source == nil {
		return
	}
	if len(f.Send)+len(f.Return)+len(s.Send)+len(s.Return) == 0 {
		if f.IsUsed && j.Cwd == "" {
			j.Cwd = f.BaseDir
		}
		return
	}
	j.Files = &hosts.JobFiles{Own: len(s.Send) > 0, Return: f.patterns(s)}
	if rel, err := filepath.Rel(f.BaseDir, j.Cwd); err == nil && filepath.IsLocal(rel) {
		j.Cwd = rel
	}
}

// patterns returns the patterns of the files that a job returns.
func (f *Files) patterns(s *jobs.Spec) []string {
	if s.Options == nil {
		return f.Return
	}
	return slices.Concat(f.Return, s.Return)
}

// maxServing bounds the number of a host's Wants that are answered concurrently. A helper sends no
// more.
const maxServing = 64

// serve answers a Want in a goroutine, because a disk of this machine may hang.
func (a *agent) serve(m *hosts.Want) {
	if a.numServing.Add(1) > maxServing {
		a.numServing.Add(-1)
		a.handleLinkDown(&hosts.Error{Host: a.name, Class: hosts.Broken,
			Err: fmt.Errorf("it asks for more than %d pieces of files at once", maxServing)})
		return
	}
	w := a.worker
	go func() {
		p := &hosts.Piece{ID: m.ID}
		var err error
		if p.Bulk, p.Size, err = a.readWanted(m); err != nil {
			p.Why = err.Error()
		}
		a.numServing.Add(-1) // first, because the host may ask for the next piece when it has this one
		w.Send(p)            // if it cannot be sent, the link ends
	}()
}

// readWanted reads the data that a Want asks for.
func (a *agent) readWanted(m *hosts.Want) (b []byte, size int64, err error) {
	limit := min(max(0, m.Limit), hosts.MaxChunk)
	f := &a.d.cfg.Files
	if f.Source == nil || m.Offset < 0 {
		return nil, 0, errors.New("there is nothing to send")
	}
	if len(m.Sums) > hosts.MaxContents {
		return nil, 0, fmt.Errorf("more than %d contents are wanted at once", hosts.MaxContents)
	}
	offset := m.Offset
	for _, text := range m.Sums {
		sum, err := files.ParseSum(text)
		if err != nil {
			return nil, 0, err
		}
		part, err := f.Source.Read(sum, offset, limit-len(b))
		if err != nil {
			return nil, 0, err
		}
		b, offset = append(b, part...), 0
	}
	if len(m.Sums) > 0 {
		return b, 0, nil
	}
	text, err := a.manifest(m)
	if err != nil {
		return nil, 0, err
	}
	size = int64(len(text))
	return text[min(m.Offset, size):min(m.Offset+int64(limit), size)], size, nil
}

// manifest returns the text of a manifest. It is created when its beginning is requested, and kept
// until its end has been requested.
func (a *agent) manifest(m *hosts.Want) ([]byte, error) {
	if m.Offset > 0 {
		text, ok := a.manifests.Load(m.Attempt)
		if !ok {
			return nil, errors.New("the beginning of the list was not asked for")
		}
		if all := text.([]byte); m.Offset+int64(m.Limit) < int64(len(all)) {
			return all, nil
		}
		a.manifests.Delete(m.Attempt)
		return text.([]byte), nil
	}
	items := slices.Concat(a.d.cfg.Files.Send, a.host.Load().Send)
	if m.Attempt != (jobs.AttemptID{}) {
		spec, err := a.specOf(a.ctx, m.Attempt)
		switch {
		case err != nil:
			return nil, err
		case spec.Options != nil:
			items = spec.Send
		default:
			items = nil
		}
	}
	list, err := a.d.cfg.Files.Source.Manifest(items)
	if err != nil {
		return nil, err
	}
	text := list.Encode()
	if len(text) > min(max(0, m.Limit), hosts.MaxChunk) {
		a.manifests.Store(m.Attempt, text)
	}
	return text, nil
}

// specOf returns the job of an attempt that the host was given. The error is errNotGiven if it was
// given to another host, or to none.
func (a *agent) specOf(ctx context.Context, id jobs.AttemptID) (*jobs.Spec, error) {
	spec, err := query(ctx, a.d, func(e *engine) *jobs.Spec {
		if !e.core.IsAssigned(a.name, id) {
			return nil
		}
		return e.core.Table().Job(id.Job).Spec
	})
	if err == nil && spec == nil {
		err = errNotGiven
	}
	return spec, err
}

// errNotGiven is the error for a host that asks for something of an attempt that it does not have.
var errNotGiven = errors.New("the host was not given this attempt")

// sendChanges makes the helper request the files that every job gets again after they have changed.
func (a *agent) sendChanges() {
	f := &a.d.cfg.Files
	items := slices.Concat(f.Send, a.host.Load().Send)
	if f.Source == nil || len(items) == 0 {
		return
	}
	if v := f.Source.Version(items); v != a.filesVersion {
		a.filesVersion = v
		a.sendHost(&hosts.Resend{})
	}
}

// pathSeed is the seed of the hashes in returns.by.
var pathSeed = maphash.MakeSeed()
