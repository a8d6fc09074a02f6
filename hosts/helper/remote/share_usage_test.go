//go:build linux

package remote

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// usageWorld is a shared directory in which helpers of our user update the record.
type usageWorld struct {
	t     *testing.T
	dir   string
	dirfd int
	now   time.Duration
}

func newUsageWorld(t *testing.T) *usageWorld {
	dir := filepath.Join(t.TempDir(), "share")
	dirfd, err := openShare(dir, true)
	must(t, err)
	t.Cleanup(func() { unix.Close(dirfd) })
	return &usageWorld{t, dir, dirfd, time.Hour}
}

// hold lets our user hold four slots for d, at which the helpers look in turns.
func (w *usageWorld) hold(d time.Duration, helpers ...*hosts.SlotUsage) {
	claims := []hosts.SlotClaim{{User: os.Getuid(), Run: "r", Held: 4}}
	for i, end := 0, w.now+d; w.now < end; i++ {
		w.now += 3 * time.Second
		updateUsage(helpers[i%len(helpers)], w.dirfd, w.dir, w.now, time.Hour, 8, claims, true)
	}
}

// expect checks what a helper that starts now knows of our usage.
func (w *usageWorld) expect(what string, want float64) {
	w.t.Helper()
	var u hosts.SlotUsage
	updateUsage(&u, w.dirfd, w.dir, w.now, time.Hour, 8, nil, false)
	if got := u.Mean(os.Getuid()); math.Abs(got-want) > 0.05 {
		w.t.Errorf("%s: a usage of %v, want %v", what, got, want)
	}
}

// file returns the path of the only record.
func (w *usageWorld) file() string {
	w.t.Helper()
	paths, _ := filepath.Glob(filepath.Join(w.dir, usagePrefix+"*"))
	if len(paths) != 1 {
		w.t.Fatalf("the records %v, want one", paths)
	}
	return paths[0]
}

// TestUsageIsKept checks that helpers of a user that follow each other, or run at once, charge slots
// once, and that a damaged, lost, or locked record costs nothing while a helper lives.
func TestUsageIsKept(t *testing.T) {
	w := newUsageWorld(t)
	var first, second, third hosts.SlotUsage
	w.hold(time.Hour, &first)
	w.expect("after one half-life", 2)
	w.hold(time.Hour, &second, &third)
	w.expect("after two", 3)
	if st, err := os.Stat(w.file()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v; want that nobody else can read it", st.Mode(), err)
	}

	must(t, os.Truncate(w.file(), 20))
	w.expect("damaged", 0)
	w.hold(time.Minute, &third)
	w.expect("repaired", 3)
	must(t, os.Remove(w.file()))
	w.expect("lost", 0)
	w.hold(time.Minute, &third)
	w.expect("made again", 3)

	before, err := os.ReadFile(w.file())
	must(t, err)
	lock, err := os.OpenFile(w.file(), os.O_RDWR, 0)
	must(t, err)
	must(t, lockRange(int(lock.Fd()), w.file(), 0, 0))
	w.hold(time.Hour, &third)
	after, err := os.ReadFile(w.file())
	must(t, err)
	if !slices.Equal(before, after) {
		t.Error("the record was written while another helper had locked it")
	}
	must(t, lock.Close())
	w.hold(time.Minute, &third)
	w.expect("unlocked", 3.5)
}

// TestForeignRecordsAreIgnored checks that a record of another boot or version, and files of others
// and links with names like those of a record, count for nothing and are not changed.
func TestForeignRecordsAreIgnored(t *testing.T) {
	full := func(boot string, at time.Duration) []byte {
		return appendSealed(nil, usageMagic, usageFields{boot, at, []hosts.UserUsage{{User: os.Getuid(), Mean: 8}}})
	}
	var newer []byte
	jobstest.Newer(&jobs.FormatUsage, func() { newer = full(bootID(), time.Hour) })
	ours := full(bootID(), time.Hour)
	for _, c := range []struct {
		name    string
		text    []byte
		make    func(path string) error
		counts  bool
		changes bool
	}{
		{"ours", ours, nil, true, true},
		{"another boot", full("other", time.Hour), nil, false, true},
		{"the future", full(bootID(), 1000*time.Hour), nil, false, true},
		{"a newer version", newer, nil, false, false},
		{"another file", []byte("our notes"), nil, false, false},
		{"readable", ours, func(path string) error { return os.Chmod(path, 0o644) }, false, false},
		{"a second name", ours, func(path string) error { return os.Link(path, path+"2") }, false, false},
		{"a link", ours, func(path string) error {
			return errors.Join(os.Rename(path, path+"-away"), os.Rename(path+"-away", filepath.Dir(path)+"/x"),
				os.Symlink("x", path))
		}, false, false},
		{"of another user", ours, func(path string) error {
			if os.Getuid() != 0 {
				return os.Remove(path)
			}
			return os.Chown(path, evil, evil)
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newUsageWorld(t)
			path := filepath.Join(w.dir, usagePrefix+strconv.Itoa(os.Getuid())+".0")
			must(t, os.WriteFile(path, c.text, 0o600))
			if c.make != nil {
				must(t, c.make(path))
			}
			if want := 0.0; c.counts {
				w.expect(c.name, 8)
			} else {
				w.expect(c.name, want)
			}
			var u hosts.SlotUsage
			w.hold(time.Minute, &u)
			text, err := os.ReadFile(path)
			if err == nil && slices.Equal(text, c.text) == c.changes {
				t.Errorf("the file was changed: %v, want %v", !c.changes, c.changes)
			}
		})
	}
}

// TestUsageCountsWhereRootSaysSo checks the part of a run of a user with a high usage, beside one
// who has used nothing, with and without a half-life in the file of root.
func TestUsageCountsWhereRootSaysSo(t *testing.T) {
	for _, c := range []struct {
		name, shares string
		ours         float64
		claimed      int // usage that the other user claims, in hundredths of a slot
		want         int
	}{
		{"no file", "", 8, 0, 4},
		{"weights only", "4243 1\n", 8, 0, 4},
		{"no duration", "half-life 0\n", 8, 0, 4},
		{"half-life", "half-life 1h\n", 8, 0, 3},
		{"both have used it", "half-life 1h\n", 8, 800, 4},
		{"nobody has", "half-life 1h\n", 0, 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, dirfd := sharedTestDir(t)
			if c.shares != "" {
				must(t, os.WriteFile(filepath.Join(dir, sharesFile), []byte(c.shares), 0o644))
			}
			record := appendSealed(nil, usageMagic, usageFields{bootID(), uptime(),
				[]hosts.UserUsage{{User: os.Getuid(), Mean: c.ours}}})
			must(t, os.WriteFile(filepath.Join(dir, usagePrefix+strconv.Itoa(os.Getuid())+".0"), record, 0o600))
			theirs := claimText{run: "theirs", group: "theirs", name: "theirs", want: 8, weight: 1, slots: 8, held: 4,
				used: c.claimed}
			made(t, dir, claimPrefix+"theirs", victim, theirs.bytes(), byteRange{})
			control, err := openControl(t.TempDir())
			must(t, err)
			h := &helper{open: &hosts.Open{ShareWeight: 1}, slots: 8, control: control,
				config: slotConfig{ShareDir: dir, Run: "ours", Host: "h"}}
			defer h.removeClaims()
			for range 2 {
				h.updateShare(&hosts.Share{Rule: 8, Slots: 8, Want: 8}, time.Hour)
			}
			if s := h.sharing.current.Load(); s == nil || s.Slots != c.want {
				t.Errorf("%+v, want %d slots", s, c.want)
			}
			claims, _, err := readClaims(dirfd, dir, claimGroup("ours", "h"), "ours", nil)
			must(t, err)
			want := c.ours
			if c.want == 4 && c.claimed == 0 {
				want = 0
			}
			if own := claims[indexOfOwn(claims, claimGroup("ours", "h"))]; math.Abs(own.Used-want) > 0.1 {
				t.Errorf("we claim a usage of %v, want %v", own.Used, want)
			}
		})
	}
}
