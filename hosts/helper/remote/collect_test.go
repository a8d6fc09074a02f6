//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestASuccessRemovesFilesThatWereKept checks that the files of an attempt that made nothing to
// return are kept, and that the next success of the job on the host removes them.
func TestASuccessRemovesFilesThatWereKept(t *testing.T) {
	s := &slot{config: &slotConfig{Host: "a", Files: t.TempDir()}}
	for _, name := range []string{"own", "returned", "tmp"} {
		must(t, os.Mkdir(filepath.Join(s.config.Files, name), 0o700))
	}
	end := func(n int, file string) *jobs.Outcome {
		id := jobs.AttemptID{Job: 7, N: n}
		dir := s.store().Directory(id.String())
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
		o := &jobs.Outcome{Started: 1, Ended: 2}
		s.collect(&hosts.LaunchJob{Attempt: id, Files: &hosts.JobFiles{Return: []string{"out.csv"}}}, id.String(), o)
		return o
	}
	kept := filepath.Join(s.config.Files, "kept", "7")
	if o := end(1, "other.csv"); !o.Unreturned {
		t.Fatalf("a job without its file: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(kept, "other.csv")); err != nil {
		t.Errorf("the files of a job that made nothing to return: %v", err)
	}
	if o := end(2, "out.csv"); o.Unreturned || o.Files != 1 {
		t.Errorf("a job with its file: %+v", o)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("the files of the earlier attempt after a success: %v", err)
	}
}
