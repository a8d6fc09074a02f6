//go:build linux

package remote

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func fullConfig() *slotConfig {
	return &slotConfig{Run: "r", RunName: "name", Host: "h", Dir: "/d\xff", Boot: "b", Network: true, Cwd: "/c\xfe", Shell: []string{"/bin/sh", "-e"},
		Setup: "A=\xc3\x28", Env: []jobs.EnvVar{{Name: "X", Value: "a\xffb\n"}, {Name: "E"}}, GPUs: []int{3, 7}, Nice: -3, Grace: time.Second}
}

func FuzzConfig(f *testing.F) {
	f.Add(fullConfig().append(nil))
	f.Add((&slotConfig{}).append(nil))
	f.Add([]byte(configMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err != nil {
			return
		}
		if again, err := parseConfig(c.append(nil)); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%+v became %+v, %v", c, again, err)
		}
	})
}

// What supervisors are told arrives byte for byte, or not at all.
func TestConfigDamage(t *testing.T) {
	c := fullConfig()
	b := c.append(nil)
	if got, err := parseConfig(b); err != nil || !reflect.DeepEqual(got, c) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range b {
		d := append([]byte(nil), b...)
		d[i] ^= 0x10
		if got, err := parseConfig(d); err == nil {
			t.Errorf("byte %d changed: %+v", i, got)
		}
		if _, err := parseConfig(b[:i]); err == nil {
			t.Errorf("cut to %d bytes and taken", i)
		}
	}
	if _, err := parseConfig(appendSpec(nil, &hosts.LaunchJob{})); err == nil {
		t.Error("a job was taken for a configuration")
	}
}

// DESIGN 8: values that are not UTF-8 reach jobs unchanged, the run's and the
// job's; setup too.
func TestAnyBytesReachJobs(t *testing.T) {
	w := newWorld(t)
	open := w.open()
	open.Env = []jobs.EnvVar{{Name: "X", Value: "a\xffb"}}
	open.Setup = "S='s\xfe'"
	f := w.start(open)
	j := job("1.1", "printf '%s|%s|%s|\xfd' \"$X\" \"$Y\" \"$S\"")
	j.Env = []jobs.EnvVar{{Name: "Y", Value: "c\xf0d"}}
	f.launch(j)
	f.exit("1.1")
	if got, want := w.content("1.1", jobs.FileOut), "a\xffb|c\xf0d|s\xfe|\xfd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.bye()
}

// DCS_RUN is the name, as --on-done and the JSON have it; the uid marks processes.
func TestRunNameOfJobs(t *testing.T) {
	for name, want := range map[string]string{"sweep": "DCS_RUN=sweep", "": "DCS_RUN=uid"} {
		e := newJobEnv(nil, &slotConfig{Run: "uid", RunName: name}, 1)
		if got := e.of(&hosts.LaunchJob{}, "mark", "/p"); !slices.Contains(got, want) {
			t.Errorf("%q: %q", name, got)
		}
	}
}
