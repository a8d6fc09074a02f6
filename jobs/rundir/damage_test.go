package rundir_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// inMemory creates a run on a disk of its own, with all options set.
func inMemory(t testing.TB) (*memdisk.Mount, *rundir.Run) {
	t.Helper()
	m := memdisk.New().Mount("a")
	r, err := rundir.CreateOn(m, "/runs", "x", rundir.Settings{Version: "1", Cwd: "/home/ada", Shell: "/bin/bash",
		Setup:    "source ~/v/bin/activate\nmodule load x",
		JobsFile: "jobs.txt", InventoryText: "[[host]]\nname = \"melon1\"\n", Options: map[string]any{"tries": int64(2),
			"tags": []any{"a"}},
		EnvNames: []rundir.EnvRef{{Name: "A", Value: "1", Stored: true}}}, nil)
	must(t, err)
	return m, r
}

// overwrite silently replaces the content of a file, as damage does.
func overwrite(t testing.TB, m *memdisk.Mount, path string, content []byte) {
	t.Helper()
	must(t, rundir.Overwrite(m, path, content))
}

// flipped returns a copy of b with one bit flipped.
func flipped(b []byte, bit int) []byte {
	c := bytes.Clone(b)
	c[bit/8] ^= 1 << (bit % 8)
	return c
}

func reopen(t testing.TB, m *memdisk.Mount, r *rundir.Run) *rundir.Run {
	t.Helper()
	again, err := rundir.OpenOn(m, r.Dir)
	must(t, err)
	return again
}

// contentOf returns the path and the content of a file of the run.
func contentOf(t testing.TB, m *memdisk.Mount, r *rundir.Run, name string) (path string, b []byte) {
	t.Helper()
	b, err := rundir.ReadFile(m, r.Path(name))
	must(t, err)
	return r.Path(name), b
}

// TestSettingsWithADamagedByte checks that run.toml is either read as it was written or not at all.
// If it is cut at any byte, or has any bit flipped, the error names the file. It never yields
// another command, directory, or option (promise 5).
func TestSettingsWithADamagedByte(t *testing.T) {
	m, r := inMemory(t)
	path, whole := contentOf(t, m, r, rundir.SettingsFile)
	first := reopen(t, m, r)
	refused, errs := 0, map[string]bool{}
	try := func(what string, at int, content []byte) {
		t.Helper()
		overwrite(t, m, path, content)
		got, err := rundir.OpenOn(m, r.Dir)
		switch {
		case err != nil && !strings.Contains(err.Error(), path):
			t.Fatalf("%s %d: the error does not name the file: %v", what, at, err)
		case err != nil:
			refused++
			errs[err.Error()] = true
		case !reflect.DeepEqual(got.Settings, first.Settings):
			t.Fatalf("%s %d: taken as %+v", what, at, got.Settings)
		}
	}
	for i := range whole {
		try("cut at", i, whole[:i])
		for bit := range 8 {
			try("bit flipped in byte", i, flipped(whole, 8*i+bit))
		}
	}
	if refused < 8*len(whole) {
		t.Errorf("only %d of %d were noticed", refused, 9*len(whole))
	}
	// The user may change it by hand, as its first line explains.
	_, rest, _ := bytes.Cut(whole, []byte("\n"))
	overwrite(t, m, path, bytes.Replace(rest, []byte("/bin/bash"), []byte("/bin/dash"), 1))
	if got, err := rundir.OpenOn(m, r.Dir); err != nil || got.Settings.Shell != "/bin/dash" {
		t.Errorf("changed by hand: %v", err)
	}
}

// TestCutNonceIsAnError checks that a truncated nonce is an error. It would match on hosts that do
// not see the directory.
func TestCutNonceIsAnError(t *testing.T) {
	m, r := inMemory(t)
	for n := range r.Nonce {
		overwrite(t, m, r.Path(rundir.NonceFile), []byte(r.Nonce[:n]))
		if _, err := rundir.OpenOn(m, r.Dir); err == nil || !strings.Contains(err.Error(), r.Path(rundir.NonceFile)) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestJobsCanBeAddedAfterDamage checks that jobs can be added to a jobs.jsonl with any bit flipped,
// without changing its existing content. At most one old job is lost, and no new one.
func TestJobsCanBeAddedAfterDamage(t *testing.T) {
	m, r := inMemory(t)
	all := jobstest.Specs(5)
	must(t, r.AppendSpecs(all[:3]))
	path, whole := contentOf(t, m, r, rundir.SpecsFile)
	for bit := range 8 * len(whole) {
		overwrite(t, m, path, flipped(whole, bit))
		again := reopen(t, m, r)
		if err := again.AppendSpecs(all[3:]); err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		got, err := jobstest.StoredSpecs(again.ReadSpecs)
		if err != nil || len(got.Specs) != len(all) {
			t.Fatalf("bit %d: %d jobs, %v", bit, len(got.Specs), err)
		}
		lost := 0
		for i, s := range got.Specs {
			if s.Damage != "" && i < 3 {
				lost++
			} else if !reflect.DeepEqual(s, all[i]) {
				t.Fatalf("bit %d: job %d is %q", bit, s.ID, s.Command)
			}
		}
		if lost > 1 {
			t.Fatalf("bit %d costs %d jobs", bit, lost)
		}
	}
}

// TestAppendAfterALostEnd checks a jobs.jsonl that was cut off at any byte, as by a crash, or that
// has lost its end while the journal knows of more jobs. New jobs get new numbers, and the lost
// ones are marked as lost.
func TestAppendAfterALostEnd(t *testing.T) {
	m, r := inMemory(t)
	all := jobstest.Specs(6)
	must(t, r.AppendSpecs(all[:5]))
	path, whole := contentOf(t, m, r, rundir.SpecsFile)
	for cut := range len(whole) {
		for _, known := range []int{0, 5} {
			overwrite(t, m, path, whole[:cut])
			again := reopen(t, m, r)
			before, err := jobstest.StoredSpecs(again.ReadSpecs)
			if err != nil || len(before.Damage) > 0 {
				t.Fatalf("cut at %d: %q, %v", cut, before.Damage, err)
			}
			again.MissingSpecs(known)
			if err := again.AppendSpecs(all[max(known, len(before.Specs)):]); err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			got, err := jobstest.StoredSpecs(again.ReadSpecs)
			if err != nil || len(got.Specs) != 6 {
				t.Fatalf("cut at %d: %d jobs, %v", cut, len(got.Specs), err)
			}
			for i, s := range got.Specs {
				if lost := i >= len(before.Specs) && i < known; lost != (s.Damage != "") || !lost &&
					!reflect.DeepEqual(s, all[i]) || s.ID != jobs.ID(i+1) {
					t.Fatalf("cut at %d: job %d is %q, %q", cut, i+1, s.Command, s.Damage)
				}
			}
		}
	}
}

// TestWriteNewAndReplaceAreDurable checks that a file that was successfully created or replaced
// survives a power loss. At any other time, a replaced file has the old or the new content, never a
// mixture.
func TestWriteNewAndReplaceAreDurable(t *testing.T) {
	for n := 0; ; n++ {
		m := memdisk.New().Mount("a")
		count, gone := 0, errors.New("no power")
		m.Fault = func(string, string) error {
			if count++; count > n {
				return gone
			}
			return nil
		}
		first := rundir.WriteNew(m, "/x", []byte("first"))
		second := gone
		if first == nil {
			second = rundir.Replace(m, "/x", []byte("second"))
		}
		m.Fault = nil
		m.PowerLoss(nil)
		got, err := rundir.ReadFile(m, "/x")
		switch text := string(got); {
		case second == nil && text != "second", first == nil && text != "first" && text != "second":
			t.Fatalf("after %d operations: %v, %v, and there is %q, %v", n, first, second, text, err)
		case second == nil:
			return
		}
	}
}
