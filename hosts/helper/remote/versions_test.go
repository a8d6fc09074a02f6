//go:build linux

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestNewerHostFormatsAreRefused checks that each format of a host is refused by name in a newer
// version, and that its file is not changed.
func TestNewerHostFormatsAreRefused(t *testing.T) {
	dir := t.TempDir()
	control := filepath.Join(dir, fileControl)
	var claimBytes, coresBytes, usageBytes, jobBytes []byte
	spool := spool{dir}
	jobstest.Newer(&jobs.FormatSpool, func() {
		_, err := openControl(dir)
		must(t, err)
	})
	jobstest.Newer(&jobs.FormatSpoolConfig, func() { must(t, spool.writeConfig(1, &slotConfig{})) })
	jobstest.Newer(&jobs.FormatSpoolJob, func() { jobBytes = appendSpec(nil, &hosts.LaunchJob{}) })
	jobstest.Newer(&jobs.FormatSlots, func() { claimBytes = (&claimText{}).bytes() })
	jobstest.Newer(&jobs.FormatCores, func() { coresBytes = appendSealed(nil, coresMagic, coreFields{}) })
	jobstest.Newer(&jobs.FormatUsage, func() { usageBytes = appendSealed(nil, usageMagic, usageFields{}) })
	before, err := os.ReadFile(control)
	must(t, err)
	for _, c := range []struct {
		format jobs.Format
		read   func() error
	}{
		{jobs.FormatSpool, func() error { _, err := openControl(dir); return err }},
		{jobs.FormatSpoolConfig, func() error { _, err := spool.readConfig(1); return err }},
		{jobs.FormatSpoolJob, func() error { _, err := parseSpec(jobBytes); return err }},
		{jobs.FormatSlots, func() error { return unseal(claimBytes, claimMagic, &claimFields{}) }},
		{jobs.FormatCores, func() error { return unseal(coresBytes, coresMagic, &coreFields{}) }},
		{jobs.FormatUsage, func() error { return unseal(usageBytes, usageMagic, &usageFields{}) }},
	} {
		var bad *jobs.VersionError
		if err := c.read(); !errors.As(err, &bad) || bad.Format != c.format || bad.Found != c.format.Version+1 {
			t.Errorf("%s: got %v, want an error that names both versions", c.format.Name, err)
		}
	}
	if after, err := os.ReadFile(control); err != nil || string(after) != string(before) {
		t.Errorf("the spool was changed (%v)", err)
	}
}

// TestClaimsOfOtherVersionsCount checks the rule for share_dir: what this program writes begins as the
// first version wrote it, and texts that a newer one appends are ignored. Two versions would
// otherwise use the same slots twice.
func TestClaimsOfOtherVersionsCount(t *testing.T) {
	want := claimText{run: "run", group: "0123abcd", name: "sweep", want: 5, weight: 2, slots: 8, held: 1,
		memory: 1 << 30, used: 250, tried: 1}
	fields := []string{"run", "0123abcd", "sweep", "5", "2", "8", "1", "1073741824", "250", "1"}
	first := want
	first.used, first.tried = 0, 0
	for _, c := range []struct {
		name  string
		bytes []byte
		want  claimText
	}{
		{"the first version", appendSealed(nil, magic{"DSH", &jobs.Format{Version: 3}}, claimFields{fields[:8]}),
			first},
		{"a newer version", appendSealed(nil, claimMagic, claimFields{append(fields, "more", "7")}), want},
		{"this version", want.bytes(), want},
	} {
		var f claimFields
		must(t, unseal(c.bytes, claimMagic, &f))
		if got, err := f.parse(); err != nil || got != c.want {
			t.Errorf("a claim of %s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	if b := want.bytes(); string(b[:4]) != "DSH3" {
		t.Errorf("a claim begins with %q, which other versions do not read", b[:4])
	}
	var cores coreFields
	old := appendSealed(nil, magic{"DCC", &jobs.Format{Version: 1}}, coreFields{"0-3"})
	if err := unseal(old, coresMagic, &cores); err != nil || cores.CPUs != "0-3" {
		t.Errorf("cores: got %+v, %v", cores, err)
	}
}
