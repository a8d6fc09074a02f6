package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/jobs/rundir"
)

// Write replaces live.json of the run by s. The file is complete at any time, has mode
// 0600, and is not durable. Write may block as long as the disk does.
func Write(r *rundir.Run, s *State) error { return WriteIf(r, s, nil) }

// WriteIf is Write that replaces the file only if check, which it calls when the new
// content is on the disk, returns nil. Otherwise it returns the error of check.
func WriteIf(r *rundir.Run, s *State, check func() error) error {
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

// Read returns the content of live.json, nil if there is none. A file that is not the
// user's, is larger than MaxBytes, has another version, or is damaged is an error. The
// caller must ignore a State whose Epoch and Token are not those of the owner file.
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

// encode leaves out what a person misses least if the file would be too large otherwise.
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
	if version.V != Version {
		return nil, fmt.Errorf("it has version %d and this dcs-tui knows version %d: use the dcs-tui that wrote it", version.V, Version)
	}
	s := new(State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	if s.Epoch < 1 || s.Durable.Epoch < 0 || s.Durable.Epoch > s.Epoch || s.Durable.Bytes < 0 {
		return nil, fmt.Errorf("epoch %d with %d durable bytes of epoch %d is inconsistent", s.Epoch, s.Durable.Bytes, s.Durable.Epoch)
	}
	return s, nil
}
