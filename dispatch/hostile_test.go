package dispatch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts/files"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// hostileRig returns a rig, not started, with hosts that speak the wire format. Jobs return out.txt
// below base.
func hostileRig(t *testing.T, x *hosttest.Hostiles) (r *rig, base string) {
	base = t.TempDir()
	r = idleRig(t, 0)
	r.connector = helper.New(helper.Options{Opener: x})
	r.files = Files{Source: files.NewSource(base), BaseDir: base, RecordDir: filepath.Join(base, "dcs-runs/r/returning"),
		Return: []string{"out.txt"}, Protected: []string{filepath.Join(base, "hosts.toml")}}
	return r, base
}

// TestForgedReturnsWriteNothing checks that a host which lies about the files that a job returns
// makes nothing but that job fail: no other file is written, no memory is used without a limit, and
// no disk is filled.
func TestForgedReturnsWriteNothing(t *testing.T) {
	for _, tt := range []struct {
		attack hosttest.Attack
		path   string
		why    string
	}{
		{hosttest.ReturnsOthers, "hosts.toml", `"hosts.toml" cannot be written here: the job does not return it`},
		{hosttest.ReturnsOthers, "dcs-runs/r/run.toml", "the job does not return it"},
		{hosttest.ReturnsOthers, "../up", "the list of files is damaged"},
		{hosttest.ReturnsOthers, ".bashrc", "the job does not return it"},
		{hosttest.EndlessList, "", "the list of them has more than 16 MiB"},
		{hosttest.ManyFiles, "", "the host lists 1 of them, and reported 1000"},
		{hosttest.HugeFile, "", "the whole disk"},
	} {
		t.Run(tt.attack.String()+" "+tt.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": tt.attack}, Run: time.Second, Path: tt.path, Content: "theirs"}
				r, base := hostileRig(t, x)
				if err := os.WriteFile(filepath.Join(base, "hosts.toml"), []byte("ours"), 0o600); err != nil {
					t.Fatal(err)
				}
				specs := jobstest.Specs(1)
				specs[0].Options = &jobs.Options{Tries: 1}
				r.start(&jobs.Table{}, "evil")
				if err := r.d.Submit(specs, true); err != nil {
					t.Fatal(err)
				}
				results := r.finish(1)
				if s := results[0]; s.State != jobs.Failed || !strings.Contains(s.Outcome.Error, tt.why) {
					t.Errorf("the job: %v, %+v; want a failure because %q", s.State, s.Outcome, tt.why)
				}
				var there []string
				for _, p := range []string{"*", ".*", "dcs-runs/*", "dcs-runs/r/*", "../up"} {
					list, _ := filepath.Glob(filepath.Join(base, p))
					for _, name := range list {
						rel, _ := filepath.Rel(base, name)
						there = append(there, rel)
					}
				}
				there = slices.DeleteFunc(there, func(name string) bool {
					return name == "dcs-runs" || name == "dcs-runs/r" || name == "dcs-runs/r/returning"
				})
				if b, _ := os.ReadFile(filepath.Join(base, "hosts.toml")); string(b) != "ours" || !slices.Equal(there, []string{"hosts.toml"}) {
					t.Errorf("there is %q, and hosts.toml holds %q", there, b)
				}
			})
		})
	}
}

// TestHonestHostReturnsFiles checks that the checks accept what an honest host returns.
func TestHonestHostReturnsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &hosttest.Hostiles{Run: time.Second, Content: strings.Repeat("made", 100_000)}
		r, base := hostileRig(t, x)
		r.start(&jobs.Table{}, "good").submit(3)
		for _, res := range r.drain() {
			if res.State != jobs.Succeeded {
				t.Errorf("%+v", res)
			}
		}
		if b, err := os.ReadFile(filepath.Join(base, "out.txt")); err != nil || string(b) != x.Content {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		r.close(sched.AllDone)
	})
}
