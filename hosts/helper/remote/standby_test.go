//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/hosts/mirror"
	"dcs-tui/jobs/rundir"
)

// TestStandbyNeedsTheRunDirectory checks that a host starts no standby if it does not share the run
// directory, or if another directory has the same path there (E7).
func TestStandbyNeedsTheRunDirectory(t *testing.T) {
	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "nonce"), []byte("theirs\n"), 0o600))
	for _, dir := range []string{t.TempDir(), other, filepath.Join(other, "absent"), ""} {
		var b bytes.Buffer
		out := newOutbox(wire.NewWriter(&b))
		must(t, serveStandby(nil, out,
			&hosts.Open{Version: hosts.ProtocolVersion, RunDir: dir, Nonce: "ours"}, defaultLimits))
		out.flush()
		m, err := wire.NewReader(&b).Read()
		if hello, ok := m.(*hosts.Hello); !ok || !strings.Contains(hello.Error, "does not share") {
			t.Errorf("%q: %+v, %v", dir, m, err)
		}
	}
}

// TestMirrorOnTheSameMachine checks that a host that is the dispatcher's own machine holds no
// mirror.
func TestMirrorOnTheSameMachine(t *testing.T) {
	work := t.TempDir()
	o := &hosts.Open{Version: hosts.ProtocolVersion, Run: "r", Host: "h", WorkDir: work, Standby: true,
		Mirror: &hosts.OpenMirror{Generation: "AAAABBBBCCCCDDDD", Epoch: 1, Boot: bootID()}}
	if _, err := beginMirror(o); err == nil || !strings.Contains(err.Error(), "this machine") {
		t.Errorf("got %v", err)
	}
	o.Mirror.Boot = "another"
	r, err := beginMirror(o)
	must(t, err)
	if r.Watched() {
		t.Error("a standby watches a mirror that is not armed")
	}
	checkMirrorFollowsNoLinks(t, r)
	o.Mirror.Generation = "EEEEFFFFGGGGHHHH"
	if _, err := beginMirror(o); err != nil {
		t.Fatal(err)
	}
	if names, _ := listNames(filepath.Join(work, "r")); len(names) != 1 {
		t.Errorf("the older mirror stays: %v", names)
	}
}

// checkMirrorFollowsNoLinks checks that nothing is written where a symbolic link leads that somebody has
// put into a mirror.
func checkMirrorFollowsNoLinks(t *testing.T, r *mirror.Receiver) {
	t.Helper()
	if s := r.Store(&hosts.Store{}); s.Why != "" {
		t.Fatal(s.Why)
	}
	elsewhere := t.TempDir()
	for _, name := range []string{rundir.JournalDir, rundir.HostsDir, ".lock"} {
		path := filepath.Join(r.Dir, name)
		kept := path + ".kept"
		must(t, errors.Join(os.Rename(path, kept), os.Symlink(filepath.Join(elsewhere, name), path)))
		if name != ".lock" {
			must(t, os.Mkdir(filepath.Join(elsewhere, name), 0o700))
		}
		s := r.Store(&hosts.Store{Pieces: []hosts.StorePiece{{Name: "journal/000001.jsonl", Bulk: []byte("x")},
			{Name: "hosts/h.log", Bulk: []byte("x")}}})
		if !strings.Contains(s.Why, path+" is a symbolic link") {
			t.Errorf("%s: got %+v", name, s)
		}
		must(t, errors.Join(os.Remove(path), os.Rename(kept, path)))
	}
	for _, name := range []string{rundir.JournalDir, rundir.HostsDir, ""} {
		if names, err := listNames(filepath.Join(elsewhere, name)); err != nil || name != "" && len(names) > 0 ||
			len(names) > 2 {
			t.Errorf("files where the links lead: %v, %v", names, err)
		}
	}
}

// TestStandbysHaveOurUser checks that a process of another user is no standby of a mirror, whatever its command
// line: it may have the pid of one that has died, and then the run would have no standby any more.
func TestStandbysHaveOurUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("acts as another user, which needs root")
	}
	dir := t.TempDir()
	for uid, want := range map[int]bool{os.Getuid(): true, evil: false} {
		pid, end := startAs(t, uid, dir)
		file := filepath.Join(dir, standbyPrefix+"machine."+strconv.Itoa(pid))
		must(t, os.WriteFile(file, nil, 0o600))
		if got := isWatched(dir); got != want {
			t.Errorf("a process of user %d is a standby: %v, want %v", uid, got, want)
		}
		must(t, os.Remove(file))
		end()
	}
}
