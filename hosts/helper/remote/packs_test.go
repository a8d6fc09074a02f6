//go:build linux

package remote

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestHelperReadsPacks checks that a helper knows an attempt whose files are in a pack: after damage
// to the journal it would otherwise answer that the attempt never started (promises 1 and 2).
func TestHelperReadsPacks(t *testing.T) {
	const run = "packedrun"
	dir, id := t.TempDir(), jobs.AttemptID{Job: 7, N: 1}
	claim := attempts.Claim{Run: run, Attempt: id, Host: "melon", By: "1.2.3", Boot: "b", At: 1}
	path := jobs.AttemptFile(dir, id, jobs.FileStatus)
	polltest.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	polltest.Must(t, os.WriteFile(path, claim.EncodeFinished(1, jobs.Outcome{Started: 1, Ended: 2}), 0o600))
	p := attempts.Packer{Disk: rundir.OS, Dir: dir, Run: run, May: func(jobs.AttemptID) bool { return true }}
	if n, err := p.Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	h := &helper{dir: dir, disk: rundir.WithCalls(dir, call), spool: spool{t.TempDir()}}
	h.config.Run = run
	if f, err := h.readFate(id); f.State != attempts.Finished || err != nil {
		t.Errorf("a probe finds state %d, %v", f.State, err)
	}
	listed := 0
	err := attempts.EachFate(h.disk, dir, run, "melon", nil, func(f attempts.Fate) error {
		if f.Attempt == id && f.State == attempts.Finished {
			listed++
		}
		return nil
	})
	if listed != 1 || err != nil {
		t.Errorf("a list has the attempt %d times, %v", listed, err)
	}
}

// TestDamagedPackLeavesAttemptsUnknown checks that an attempt does not count as never started while a
// damaged pack may have its files, and that a list reports it. What is no file was never a pack.
func TestDamagedPackLeavesAttemptsUnknown(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	pack := filepath.Join(w.runDir, "attempts", "000.AAAA.zip")
	must(t, os.WriteFile(pack, []byte("damaged"), 0o600))
	must(t, os.Mkdir(filepath.Join(w.runDir, "attempts", "000.BBBB.zip"), 0o700))
	must(t, unix.Mkfifo(filepath.Join(w.runDir, "attempts", "000.CCCC.zip"), 0o600))
	must(t, unix.Mknod(filepath.Join(w.runDir, "attempts", "000.DDDD.zip"), unix.S_IFSOCK|0o600, 0))
	if p := f.probe("17.1"); p.Answer != hosts.Unknown || !strings.Contains(p.Why, pack) {
		t.Errorf("with a damaged pack: %+v", p)
	}
	f.launch(job("18.1", "exit 3"))
	f.exits("18.1", 3)
	listed := func() *hosts.Listed {
		f.send(&hosts.List{Epoch: 1})
		return await(f, func(m *hosts.Listed) bool { return m.Last })
	}
	if m := listed(); len(m.Jobs) != 1 || !m.LacksPack || !strings.Contains(m.Why, pack) {
		t.Errorf("listed with a damaged pack: %+v", m)
	}
	must(t, os.Remove(pack))
	f.answers("17.1", hosts.NeverStarted)
	if m := listed(); m.LacksPack || m.Why != "" {
		t.Errorf("listed: %+v", m)
	}
	f.endRun()
}

// TestUnreadablePackLeavesAttemptsUnknown checks the same for a pack that cannot be read, which may be
// whole: with a list that lacked it, jobs without records would run again.
func TestUnreadablePackLeavesAttemptsUnknown(t *testing.T) {
	w := newWorld(t)
	h, _ := w.helperWithoutProcess()
	w.sentinel("1.1", "melon1", jobs.Outcome{})
	p := attempts.Packer{Disk: h.disk, Dir: h.dir, Run: w.run, May: func(jobs.AttemptID) bool { return true }}
	if n, err := p.Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	_, packs := plainFiles(t, h.dir)
	h.disk = rundir.WithCalls(h.dir, func(op, path string, do func() error) error {
		if path == packs[0] {
			do = func() error { return unix.EACCES }
		}
		return rundir.Call(op, path, do)
	})
	for _, id := range []string{"1.1", "2.1"} {
		_, err := h.readFate(attemptID(t, id))
		if err == nil || !strings.Contains(err.Error(), packs[0]) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("a probe of %s finds %v", id, err)
		}
	}
	r, out := io.Pipe()
	h.outbox = newOutbox(wire.NewWriter(out))
	go h.listAll(&hosts.List{})
	m, err := wire.NewReader(r).Read()
	if list, ok := m.(*hosts.Listed); err != nil || !ok || !list.LacksPack || !strings.Contains(list.Why, packs[0]) {
		t.Errorf("listed: %+v, %v", m, err)
	}
}

// ownPlace is an Open of a host that does not see the run directory, and the directory that holds
// attempts/ there.
func (w *world) ownPlace() (open *hosts.Open, dir string) {
	open = w.open()
	open.RunDir = ""
	return open, filepath.Join(w.workDir, w.run)
}

// runShort runs short jobs, each of which prints its attempt id, and returns their attempts.
func (f *helperProcess) runShort(from, to int) (ids []jobs.AttemptID) {
	f.w.t.Helper()
	var list []hosts.LaunchJob
	for i := from; i <= to; i++ {
		list = append(list, job(fmt.Sprintf("%d.1", i), "echo $DCS_ATTEMPT; echo error >&2; exit 3"))
		ids = append(ids, list[len(list)-1].Attempt)
	}
	f.launch(list...)
	for _, id := range ids {
		f.exits(id.String(), 3)
	}
	return ids
}

// plainFiles returns the names of the files of attempts in the first directory, and the packs.
func plainFiles(t testing.TB, dir string) (plain, packs []string) {
	t.Helper()
	plain, err := rundir.WithoutPacks(rundir.OS).Names(filepath.Join(dir, "attempts", "000"))
	must(t, err)
	packs, err = filepath.Glob(filepath.Join(dir, "attempts", "000.*.zip"))
	must(t, err)
	return plain, packs
}

// endRunPacking is endRun with a Bye that asks for packs.
func (f *helperProcess) endRunPacking() {
	f.w.t.Helper()
	f.send(&hosts.Bye{End: true, Pack: true})
	must(f.w.t, f.wait())
}

// TestHostPacksWithoutFreeInode checks that a host packs the files that it keeps although no more files
// can be created there, and leaves nothing but the pack.
func TestHostPacksWithoutFreeInode(t *testing.T) {
	w := newWorld(t)
	h, _ := w.helperWithoutProcess()
	h.workDir, h.outbox = h.dir, newOutbox(wire.NewWriter(io.Discard))
	for i := range 5 {
		w.sentinel(fmt.Sprintf("%d.1", i+1), "melon1", jobs.Outcome{})
	}
	full := false // used in packQueue only
	h.disk = rundir.WithCalls(h.dir, func(op, path string, do func() error) error {
		if _, err := os.Lstat(path); full && op == "open" && err != nil {
			do = func() error { return unix.ENOSPC }
		}
		return rundir.Call(op, path, do)
	})
	h.reservePack()
	h.packQueue.add("full", 0, func() { full = true })
	h.endPacks(true)
	if plain, packs := plainFiles(t, h.dir); len(plain) != 0 || len(packs) != 1 {
		t.Errorf("after the end: %v, %v", plain, packs)
	}
	names, err := listNames(filepath.Join(h.dir, "attempts"))
	must(t, err)
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, tempPrefix) }); i >= 0 {
		t.Errorf("%s is left", names[i])
	}
}

// TestHostPacksWhatItKeeps checks that a host which does not see the run directory packs attempts whose
// outcomes are durable, and at the end of the run all that have ended; that it packs nothing else; and
// that probes, lists, and readers find what is packed (promises 1 and 2).
func TestHostPacksWhatItKeeps(t *testing.T) {
	w := newWorld(t)
	open, dir := w.ownPlace()
	open.Slots = 3
	f := w.start(open)
	f.hold("20.1", "exit 0")
	ids := f.runShort(1, 10)
	all := append(slices.Clone(ids), attemptID(t, "20.1"), attemptID(t, "21.1"))
	f.send(&hosts.Pack{Epoch: 0, Attempts: all}) // of an older dispatcher
	await(f, func(m *hosts.Refused) bool { return m.FencedBy == 1 })
	f.send(&hosts.Pack{Epoch: 1, Attempts: slices.Concat(all[:5], all[10:])})
	polltest.Until(t, "five attempts are in a pack", func() bool {
		plain, _ := plainFiles(t, dir)
		return len(plain) == 18
	})
	if _, packs := plainFiles(t, dir); len(packs) != 1 {
		t.Errorf("packs: %v", packs)
	}
	w.release("20.1")
	f.exits("20.1", 0)
	f.send(&hosts.Probe{Epoch: 1, Attempts: ids[:1]})
	if p := f.probed("1.1"); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 || p.Outcome.LastLine != "error" {
		t.Errorf("the answer for a packed attempt is %+v", p)
	}
	f.send(&hosts.Read{ID: 5, Attempt: ids[1], File: jobs.FileOut, Offset: 1, Limit: 100})
	if c := await(f, func(*hosts.Chunk) bool { return true }); string(c.Bulk) != ".1\n" || c.Size != 4 {
		t.Errorf("the output of a packed attempt is %q, %+v", c.Bulk, c)
	}
	f.send(&hosts.Read{ID: 6, Attempt: attemptID(t, "22.1"), File: jobs.FileOut, Limit: 100})
	if c := await(f, func(*hosts.Chunk) bool { return true }); !c.None {
		t.Errorf("the output of an unknown attempt is %+v", c)
	}
	f.crash() // the next helper finds them, too
	g := w.start(open)
	g.send(&hosts.List{Epoch: 1})
	if m := await(g, func(m *hosts.Listed) bool { return m.Last }); len(m.Jobs) != 11 || m.Why != "" {
		t.Errorf("listed: %+v", m)
	}
	g.endRunPacking()
	if plain, packs := plainFiles(t, dir); len(plain) != 0 || len(packs) != 2 {
		t.Errorf("after the end: %v, %v", plain, packs)
	}
	read := w.start(&hosts.Open{Version: hosts.ProtocolVersion, Run: w.run, RunName: w.run, Host: open.Host,
		WorkDir: w.workDir, Reads: true})
	read.send(&hosts.Read{ID: 7, Attempt: ids[9], File: jobs.FileOut, Limit: 100})
	if c := await(read, func(*hosts.Chunk) bool { return true }); string(c.Bulk) != "10.1\n" {
		t.Errorf("the output of an attempt that was packed at the end is %q, %+v", c.Bulk, c)
	}
	read.send(&hosts.Bye{})
	must(t, read.wait())
}

// TestShutOutWhilePacking checks that a helper whose dispatcher is replaced while it packs at the end of
// the run leaves the spool to its successor.
func TestShutOutWhilePacking(t *testing.T) {
	w := newWorld(t)
	open, dir := w.ownPlace()
	removed := jobs.AttemptFile(dir, attemptID(t, "1.1"), jobs.FileOut)
	call := (&plan{Root: filepath.Dir(w.base)}).key("host0", "remove", removed)
	hangs, release := hang(t, w, call.Role, call.Op, call.Path)
	f := w.start(open)
	f.runShort(1, 6)
	f.send(&hosts.Bye{End: true, Pack: true})
	hangs()
	w.control().word(ctlEpoch).Store(2)
	release()
	await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "taken over") })
	f.wait()
	if _, err := os.Stat(w.spool().path(fileControl)); err != nil {
		t.Errorf("the spool of the next helper: %v", err)
	}
	open.Epoch = 2
	g := w.start(open)
	g.hasExited("1.1", 3)
	g.send(&hosts.Bye{End: true})
	must(t, g.wait())
}

// TestHostPacksNothingInTheRunDirectory checks that a host leaves the attempts in a run directory, which
// it shares with others, to the dispatcher.
func TestHostPacksNothingInTheRunDirectory(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	ids := f.runShort(1, 6)
	f.send(&hosts.Pack{Epoch: 1, Attempts: ids})
	f.endRunPacking()
	if plain, packs := plainFiles(t, w.runDir); len(plain) != 18 || len(packs) != 0 {
		t.Errorf("after the end: %v, %v", plain, packs)
	}
}

// TestHostPacksFollowNoLinks checks that nothing is packed through a link in the place of an output or
// of a directory of attempts. Such a directory is reported, and all others are packed.
func TestHostPacksFollowNoLinks(t *testing.T) {
	w := newWorld(t)
	open, dir := w.ownPlace()
	f := w.start(open)
	f.runShort(1, 6)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	out := jobs.AttemptFile(dir, attemptID(t, "1.1"), jobs.FileOut)
	must(t, os.Remove(out))
	must(t, os.Symlink(secret, out))
	f.runShort(1001, 1006)
	f.runShort(2001, 2006)
	away := filepath.Join(t.TempDir(), "away")
	must(t, os.Rename(filepath.Join(dir, "attempts", "001"), away))
	must(t, os.Symlink(away, filepath.Join(dir, "attempts", "001")))
	f.endRunPacking()
	if plain, packs := plainFiles(t, dir); len(plain) != 3 || len(packs) != 1 {
		t.Errorf("after the end: %v, %v", plain, packs)
	}
	if b, err := os.ReadFile(secret); string(b) != "secret" || err != nil {
		t.Errorf("the file behind the link is %q, %v", b, err)
	}
	if names, err := os.ReadDir(away); len(names) != 18 || err != nil {
		t.Errorf("the directory behind the link has %v, %v", names, err)
	}
	if packs, err := filepath.Glob(filepath.Join(dir, "attempts", "002.*.zip")); len(packs) != 1 || err != nil {
		t.Errorf("the directory after the link has packs %v, %v", packs, err)
	}
	await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "symbolic link") })
}
