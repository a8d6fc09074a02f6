package hosts

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// A size, a duration and a number mean the same in a jobs file and in hosts.toml, or
// are refused in both.
func TestQuantitiesMeanTheSameEverywhere(t *testing.T) {
	type reading struct {
		value any
		err   error
	}
	job := func(option, text string, value func(*jobs.Spec) any) (r reading) {
		specs, err := jobs.Parse(strings.NewReader(fmt.Sprintf("#DCS %s=%s\ntrue\n", option, text)), "jobs", false, 1)
		if r.err = err; err == nil {
			r.value = value(specs[0])
		}
		return r
	}
	host := func(key, text string, value func(*Host) any) (r reading) {
		inv, _, err := Parse(fmt.Appendf(nil, "[[host]]\nname = 'a'\n%s = %s\n", key, text), "hosts.toml")
		if r.err = err; err == nil {
			r.value = value(inv.Hosts[0])
		}
		return r
	}
	for _, c := range []struct {
		option, key string
		job         func(*jobs.Spec) any
		host        func(*Host) any
		texts       string
		numbers     bool // texts without quotes
	}{
		{"mem", "min_mem_free", func(s *jobs.Spec) any { return s.MemBytes }, func(h *Host) any { return h.MinMemFree },
			"8G 512M 1T 1.5k 1048576 100B 2GB 2GiB 2Gi 7b 1p 16 1048575 G 8X 8GG -1 0.5 1e3 9999999P 0x10 NaN", false},
		{"mem", "min_disk_free", func(s *jobs.Spec) any { return s.MemBytes }, func(h *Host) any { return h.MinDiskFree },
			"16 1048575 1048576 4294967296 -1", true},
		{"timeout", "lost_after", func(s *jobs.Spec) any { return s.Timeout }, func(h *Host) any { return h.LostAfter },
			"60s 5m 1.5h 1d 2w 1d12h 90 1500ms 5x 5m3 -5m +5m 1e3 5M 0 0s 999999w soon", false},
		{"timeout", "lost_after", func(s *jobs.Spec) any { return s.Timeout }, func(h *Host) any { return h.LostAfter },
			"90 0 -1", true},
		{"slots", "slots", func(s *jobs.Spec) any { return s.Slots }, func(h *Host) any { return h.Slots.Fixed },
			"1 16 4096 4097 65536 100000 0 -1 1.5", true},
		{"gpus", "gpus", func(s *jobs.Spec) any { return s.GPUs.Devices() }, func(h *Host) any { return h.GPUs },
			"0 4 64 65 256 257 1024 1025", true},
	} {
		accepted := 0
		for _, text := range strings.Fields(c.texts) {
			j, quoted := job(c.option, text, c.job), text
			if !c.numbers {
				quoted = `"` + text + `"`
			}
			h := host(c.key, quoted, c.host)
			if (j.err == nil) != (h.err == nil) || j.err == nil && j.value != h.value {
				t.Errorf("%s=%s is %v (%v), %s = %s is %v (%v)", c.option, text, j.value, j.err, c.key, quoted, h.value, h.err)
			}
			if j.err == nil {
				accepted++
			}
		}
		if accepted == 0 {
			t.Errorf("none of %s=%s is accepted", c.option, c.texts)
		}
	}
	if h := host("min_mem_free", "0", func(h *Host) any { return h.MinMemFree }); h.err != nil || h.value != int64(0) {
		t.Errorf("0, no such limit: %+v", h)
	}
}
