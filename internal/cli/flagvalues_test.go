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
		var v ageValue
		if err := v.Set(s); err == nil || v != 0 {
			t.Errorf("%q was taken as %s", s, v.text())
		}
	}
	for s, want := range map[string]string{
		"30d": "30 days", "1d": "1 day", "2w": "14 days", "36h": "36 hours", "24h": "1 day", "90m": "90 minutes", "30s": "30 seconds", "1.5s": "1.50 s",
	} {
		var v ageValue
		if err := v.Set(s); err != nil || v.text() != want {
			t.Errorf("%s is told as %s, want %s (%v)", s, v.text(), want, err)
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
		{"timeout", func(s string) error { var v spanValue; return v.Set(s) },
			[]string{"90s", "30m", "1d12h", "10", "0.5", "0", "-1", "1x", "5M", " 5m", "1h5"}},
		{"mem", func(s string) error { var v sizeValue; return v.Set(s) },
			[]string{"8G", "512M", "1.5g", "2GiB", "20", "16", "4294967296", "20B", "0", "-1G", "8X", "8 G"}},
		{"tries", func(s string) error { v := countUpTo{new(countValue), jobs.MaxTries}; return v.Set(s) },
			[]string{"1", "3", "1000000", "1000001", "0", "-1", "x", "1.5"}},
		{"slots", func(s string) error { v := countUpTo{new(countValue), jobs.MaxSlots}; return v.Set(s) },
			[]string{"1", "65536", "65537", "0", "x"}},
	} {
		for _, s := range c.values {
			_, err := jobs.Parse(strings.NewReader("#DCS "+c.option+"='"+s+"'\ntrue\n"), "f", false, 1)
			if flag := c.set(s); (flag == nil) != (err == nil) {
				t.Errorf("%s %q: the flag says %v, the jobs file %v", c.option, s, flag, err)
			}
		}
	}
	var mine sizeValue
	if err := mine.Set("1536M"); err != nil || mine.String() != "1536M" {
		t.Errorf("%s, %v", &mine, err)
	}
	var span spanValue
	if err := span.Set("10"); err != nil || time.Duration(span) != 10*time.Second {
		t.Errorf("%s, %v", &span, err)
	}
}
