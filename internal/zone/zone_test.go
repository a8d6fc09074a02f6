package zone

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRulesAgreeWithTheSystem checks rules of POSIX against date(1), in winter and in summer of both
// hemispheres.
func TestRulesAgreeWithTheSystem(t *testing.T) {
	for _, rule := range []string{
		"JST-9",
		"UTC0",
		"EST5",
		"<+0330>-3:30",
		"CET-1CEST,M3.5.0,M10.5.0/3",
		"NZST-12NZDT,M9.5.0,M4.1.0/3",
		"IST-5:30",
		"PST8PDT,M3.2.0,M11.1.0",
	} {
		t.Run(rule, func(t *testing.T) {
			location, ok := parsePOSIX(rule)
			if !ok {
				t.Fatal("not understood")
			}
			for _, at := range []string{
				"2026-01-15 12:00:00",
				"2026-03-29 00:59:59",
				"2026-03-29 01:00:00",
				"2026-07-15 12:00:00",
				"2026-10-25 01:00:00",
			} {
				when, err := time.Parse(time.DateTime, at)
				if err != nil {
					t.Fatal(err)
				}
				date := exec.Command("date", "-d", at+" UTC", "+%Y-%m-%d %H:%M:%S %z")
				date.Env = append(date.Environ(), "TZ="+rule)
				out, err := date.Output()
				if err != nil {
					t.Fatalf("date: %v", err)
				}
				want := strings.TrimSpace(string(out))
				if got := when.In(location).Format("2006-01-02 15:04:05 -0700"); got != want {
					t.Errorf("%s UTC: got %s, want %s", at, got, want)
				}
			}
		})
	}
}

// TestSetLocal checks that a rule sets the local time, and that a value that is neither a zone of the
// system nor a rule is an error.
func TestSetLocal(t *testing.T) {
	before := time.Local
	t.Cleanup(func() { time.Local = before })
	for tz, want := range map[string]int{"JST-9": 9 * 3600, ":EST5": -5 * 3600} {
		t.Setenv("TZ", tz)
		err := SetLocal()
		if _, offset := time.Now().Zone(); err != nil || offset != want {
			t.Errorf("TZ=%s: got %d s, %v; want %d s", tz, offset, err, want)
		}
	}
	for _, tz := range []string{"", "UTC", ":UTC"} {
		t.Setenv("TZ", tz)
		if err := SetLocal(); err != nil {
			t.Errorf("TZ=%s: %v", tz, err)
		}
	}
	for _, tz := range []string{"Mars/Olympus", "JST", "/nonexistent/zone", "X-", "CET-1CEST,nonsense"} {
		t.Setenv("TZ", tz)
		if err := SetLocal(); err == nil || !strings.Contains(err.Error(), tz) {
			t.Errorf("TZ=%s: got %v, want an error that names it", tz, err)
		}
	}
}
