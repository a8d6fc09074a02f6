//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs/attempts"
)

// The place of a host's attempts is decided once in a run, and noted in work_dir. A
// helper that cannot see the shared directory for a moment, or sees a copy of it, would
// not find the claims there, and would take attempts that have run for never started.
const (
	filePlace   = "place." // and the host's name
	placeShared = "run directory"
	placeOwn    = "work_dir"
)

// sharedPlace returns the note of a host whose attempts are in the run directory dir.
func sharedPlace(dir string) string { return placeShared + " " + dir }

// cutPlace splits a note into the place and, for a run directory, its path.
func cutPlace(note []byte) (place, dir string) {
	text := strings.TrimSuffix(string(note), "\n")
	if dir, ok := strings.CutPrefix(text, placeShared+" "); ok {
		return placeShared, dir
	}
	return text, ""
}

// errUnseen may heal by itself: file servers come back, automounters are slow.
var errUnseen = errors.New("the run directory")

// findPlace sets where attempts are written: the run directory if this host sees
// its nonce, else the run's own directory below work_dir.
func (h *helper) findPlace(hello *hosts.Hello) error {
	note := filepath.Join(h.workDir, filePlace+h.open.Host)
	var was []byte
	var err error
	if !h.open.Check {
		was, err = readFile(note)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	sees, err := seesNonce(h.open.RunDir, h.open.Nonce)
	if sees {
		h.runDir = h.open.RunDir
	}
	place, noted := cutPlace(was)
	other := false // the attempts are in the directory that RunDir is a copy of
	if err == nil && sees && place == placeShared && noted != h.open.RunDir {
		other, err = h.isOther(noted)
	}
	switch {
	case place == placeOwn:
		if sees {
			hello.Warnings = append(hello.Warnings, fmt.Sprintf("%s, which this host did not see before, is there now; the run's files stay in %s", h.open.RunDir, h.workDir))
		}
		sees, err = false, nil
	case err != nil:
		return fmt.Errorf("whether this host shares the run directory cannot be seen: %w", err)
	case place == placeShared && !sees:
		return fmt.Errorf("%w: %s, where this host's attempts are, cannot be seen there now; is it mounted?", errUnseen, h.open.RunDir)
	case h.open.Check:
	case place == "" && !sees:
		err = h.notePlace(note, placeOwn)
	case other:
		hello.Warnings = append(hello.Warnings, fmt.Sprintf("%s is a copy of %s; this host's files of the run stay in %s", h.open.RunDir, noted, noted))
	case place == "" || noted != h.open.RunDir:
		err = h.notePlace(note, sharedPlace(h.open.RunDir))
	}
	if err != nil {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	h.dir = h.workDir
	switch {
	case other:
		h.dir = noted
	case sees:
		h.dir, hello.Shared = h.open.RunDir, true
	}
	return nil
}

// isOther reports whether the noted run directory still exists and is another directory
// than RunDir. A run directory that was moved is not another one.
func (h *helper) isOther(noted string) (bool, error) {
	sees, err := seesNonce(noted, h.open.Nonce)
	if err != nil || !sees {
		return false, err
	}
	a, err1 := stat(noted)
	b, err2 := stat(h.open.RunDir)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	return a.Dev != b.Dev || a.Ino != b.Ino, nil
}

func (h *helper) notePlace(note, place string) error {
	return replace(temps{h.workDir, h.open.Host, h.holder()}.path(), note, []byte(place+"\n"))
}

// seesNonce lists the directory first: only what a listing shows is looked at,
// because a name asked for too early can stay invisible for long on NFS. An error
// means that it is not known.
func seesNonce(dir, nonce string) (bool, error) {
	if dir == "" || nonce == "" || !filepath.IsAbs(dir) {
		return false, nil
	}
	names, err := list(dir)
	if absent(err) || err == nil && !slices.Contains(names, "nonce") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := readFile(filepath.Join(dir, "nonce"))
	if err != nil && !errors.Is(err, unix.EACCES) {
		return false, err
	}
	return string(bytes.TrimSpace(b)) == strings.TrimSpace(nonce), nil
}

// absent says that an error proves that there is nothing for us at that path.
func absent(err error) bool {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// tryWrite makes dir and writes a status file's worth of bytes there for good, so
// that a directory that is read-only or full is found now, not by the first job.
func tryWrite(t temps) error {
	if err := makeDirs(t.dir); err != nil {
		return err
	}
	if err := t.sweep(); err != nil {
		return err
	}
	temp := t.path()
	err := writeTemp(temp, make([]byte, attempts.StatusBytes))
	if err == nil {
		err = again(func() error { return remove(temp) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was there: the reply to its removal was lost
	}
	return err
}

// passing says that trouble with a file system may be over by itself: the host is
// tried again, where for other trouble a person must act.
func passing(err error) bool {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.ESTALE, unix.EIO, unix.EINTR, unix.ETIMEDOUT, errUnseen} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
