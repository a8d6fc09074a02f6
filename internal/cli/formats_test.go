package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/grid"
	"dcs-tui/hosts/mirror"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// TestNewerFormatsAreRefused checks that each format of a run is refused by name in a newer version,
// and that its file is not changed. internal/arch checks that every format of jobs.Formats has such a
// test; those of hosts and of the socket have theirs in their packages.
func TestNewerFormatsAreRefused(t *testing.T) {
	var run *rundir.Run
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(run.Path(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(f jobs.Format, read func() error) {
		t.Run(f.Name, func(t *testing.T) {
			before := runFiles(t, run)
			err := read()
			want := fmt.Sprintf("has version %d, and this dcs-tui knows version %d", f.Version+1, f.Version)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
			if !maps.Equal(before, runFiles(t, run)) {
				t.Error("a file was changed")
			}
		})
	}
	take := func() error {
		j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{Force: true})
		if err == nil {
			err = j.Close()
		}
		return err
	}

	run = disktest.NewRun(t)
	jobstest.Newer(&jobs.FormatRun, func() { checkOK(t, run.UpgradeFormat("v9.8.7")) })
	check(jobs.FormatRun, func() error { _, err := rundir.Open(run.Dir); return err })
	check(jobs.FormatRun, take)

	run = disktest.NewRun(t)
	jobstest.Newer(&jobs.FormatSpecs, func() { put(rundir.SpecsFile, []byte(jobs.SpecsHeader(0))) })
	check(jobs.FormatSpecs, func() error { _, err := run.ReadSpecs(func(int, []*jobs.Spec) {}); return err })

	run = disktest.NewRun(t)
	jobstest.Newer(&jobs.FormatOwner, func() { checkOK(t, take()) })
	check(jobs.FormatOwner, func() error { _, err := journal.ReadOwner(run); return err })
	check(jobs.FormatOwner, take)

	run = disktest.NewRun(t)
	jobstest.Newer(&jobs.FormatLive, func() {
		checkOK(t, live.Write(run, &live.State{V: jobs.FormatLive.Version, Epoch: 1}, nil))
	})
	check(jobs.FormatLive, func() error { _, err := live.Read(run); return err })

	jobstest.Newer(&jobs.FormatMirror, func() {
		put(mirror.File, fmt.Appendf(nil, `{"v":%d}`, jobs.FormatMirror.Version))
	})
	check(jobs.FormatMirror, func() error { _, err := mirror.Read(run); return err })

	var source string
	jobstest.Newer(&jobs.FormatTemplate, func() {
		template, err := grid.Config{}.Parse(t.Context(), strings.NewReader("echo [a]\n[a] 1 2\n"), "t")
		checkOK(t, err)
		source = template.Source(0)
	})
	check(jobs.FormatTemplate, func() error { _, err := grid.ReadSource(source); return err })

	var request []byte
	jobstest.Newer(&jobs.FormatRequest, func() {
		var err error
		request, err = (&action.Request{Do: action.Cancel, All: true, At: time.Now()}).Encode()
		checkOK(t, err)
	})
	check(jobs.FormatRequest, func() error {
		if _, why := action.Decode(request); why != "" {
			return fmt.Errorf("%s", why)
		}
		return nil
	})

	var line string
	jobstest.Newer(&jobs.FormatStream, func() {
		line = fmt.Sprintf(`{"v":%d,"command":"true"}`, jobs.FormatStream.Version)
	})
	noJobs := slices.Values[[]*jobs.Spec](nil)
	ask, err := jobs.NewScanner(strings.NewReader(line), "-", false, 1).Stream(noJobs).NextLine()
	checkOK(t, err)
	want := fmt.Sprintf(`knows version %d, not "%d"`, jobs.FormatStream.Version, jobs.FormatStream.Version+1)
	if ask.Ask == nil || ask.Ask.Err == nil || !strings.Contains(ask.Ask.Err.Error(), want) {
		t.Errorf("a newer stream: got %+v, want an error with %q", ask, want)
	}

	// A status file has no error. Its outcome is unknown.
	claim := attempts.Claim{Run: "r", Attempt: jobs.AttemptID{Job: 1, N: 1}, Host: "h", By: "1.2.3", Boot: "b", At: 1}
	var newerClaim, newerSentinel []byte
	jobstest.Newer(&jobs.FormatClaim, func() { newerClaim = claim.Encode() })
	jobstest.Newer(&jobs.FormatSentinel, func() { newerSentinel = claim.Sentinel(1, jobs.Outcome{}) })
	if f := attempts.Decode(newerClaim, "r", claim.Attempt); f.State != attempts.Unreadable {
		t.Errorf("a newer claim counts as %v", f.State)
	}
	ended := append(claim.Encode()[:attempts.SentinelAt], newerSentinel...)
	if f := attempts.Decode(ended, "r", claim.Attempt); f.State == attempts.Finished {
		t.Errorf("a newer sentinel counts as %v", f.State)
	}
}

// TestOptionsOfANewerProgramAreRefused checks that resume does not ignore an option of the run that
// this program does not know, and knows all that it stores itself.
func TestOptionsOfANewerProgramAreRefused(t *testing.T) {
	run := disktest.NewRun(t)
	run.Settings.Options = map[string]any{"tries": "3", rundir.OptionJobs: int64(3), metrics.Option: []any{"acc"}}
	checkOK(t, checkOptions(run))
	run.Settings.Options["container"] = "x"
	if err := checkOptions(run); err == nil || !strings.Contains(err.Error(), `the option "container"`) {
		t.Errorf("got %v, want an error that names the option", err)
	}
}

func checkOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runFiles returns the contents of the files of a run, by path.
func runFiles(t *testing.T, run *rundir.Run) map[string]string {
	t.Helper()
	all := map[string]string{}
	checkOK(t, filepath.WalkDir(run.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			all[path] = string(bytes.TrimSpace(b))
		}
		return err
	}))
	return all
}

// TestFieldsOfARun compares the fields of what is in a run directory with testdata/fields.golden. A
// change of a field is a change of the format, so it needs a decision: raise
// jobs.FormatRun, unless programs of this version work correctly with it. An older program that finds
// an unknown field without a newer version has opened an epoch of the run before it gives up.
func TestFieldsOfARun(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "version", jobs.FormatRun.Version)
	for _, v := range []any{rundir.Settings{}, jobs.Spec{}, jobs.Options{}, jobs.Record{}, jobs.Outcome{},
		jobs.FileMark{}, journal.Owner{}, mirror.Description{}, action.Request{}, jobs.Change{}} {
		typ := reflect.TypeOf(v)
		fmt.Fprintln(&b, typ)
		for i := range typ.NumField() {
			f := typ.Field(i)
			fmt.Fprintf(&b, "\t%s %s %s\n", f.Name, f.Type, f.Tag)
		}
	}
	const file = "testdata/fields.golden"
	if *updateCommands {
		checkOK(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	checkOK(t, err)
	if b.String() != string(want) {
		t.Errorf(
			"the fields differ from %s. Raise jobs.FormatRun if an older program cannot use a run with the new ones, "+
				"then run go test ./internal/cli -run TestFieldsOfARun -args -update:\n%s",
			file, b.String(),
		)
	}
}
