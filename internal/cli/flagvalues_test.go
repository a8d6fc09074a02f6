package cli

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// What removes runs by their age demands a unit, because 30 means days to whoever
// writes it, and says in words what it understood.
func TestAgeNeedsUnit(t *testing.T) {
	for _, s := range []string{"30", "1", "0.5", "1e3", "", "d"} {
		var v time.Duration
		if err := ageFlag(&v).Set(s); err == nil || v != 0 {
			t.Errorf("%q was taken as %s", s, ageText(v))
		}
	}
	for s, want := range map[string]string{
		"30d": "30 days", "1d": "1 day", "2w": "14 days", "36h": "36 hours", "24h": "1 day", "90m": "90 minutes", "30s": "30 seconds", "1.5s": "1.50 s",
	} {
		var v time.Duration
		if err := ageFlag(&v).Set(s); err != nil || ageText(v) != want {
			t.Errorf("%s: got %s, want %s (%v)", s, ageText(v), want, err)
		}
	}
}

// A flag takes what the option of a jobs file takes, and no more.
func TestFlagsAgreeWithOptions(t *testing.T) {
	for _, c := range []struct {
		option string
		set    func(string) error
		values []string
	}{
		{"timeout", durationFlag(new(time.Duration)).Set,
			[]string{"90s", "30m", "1d12h", "10", "0.5", "0", "-1", "1x", "5M", " 5m", "1h5"}},
		{"mem", sizeFlag(new(int64)).Set,
			[]string{"8G", "512M", "1.5g", "2GiB", "20", "16", "4294967296", "20B", "0", "-1G", "8X", "8 G"}},
		{"tries", triesFlag(new(int)).Set,
			[]string{"1", "3", "1000000", "1000001", "0", "-1", "x", "1.5"}},
	} {
		for _, s := range c.values {
			_, err := jobs.Parse(strings.NewReader("#DCS "+c.option+"='"+s+"'\ntrue\n"), "f", false, 1)
			if flag := c.set(s); (flag == nil) != (err == nil) {
				t.Errorf("%s %q: the flag says %v, the jobs file %v", c.option, s, flag, err)
			}
		}
	}
	size := sizeFlag(new(int64))
	if err := size.Set("1536M"); err != nil || size.String() != "1536M" {
		t.Errorf("%s, %v", size, err)
	}
	var d time.Duration
	if err := durationFlag(&d).Set("10"); err != nil || d != 10*time.Second {
		t.Errorf("%s, %v", d, err)
	}
}
