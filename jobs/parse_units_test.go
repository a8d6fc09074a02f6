package jobs

import (
	"syscall"
	"testing"
	"time"
)

// TestParseDuration checks which durations are accepted.
func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"30s":         30 * time.Second,
		"5m":          5 * time.Minute,
		"2h":          2 * time.Hour,
		"1d12h":       36 * time.Hour,
		"90":          90 * time.Second,
		"1.5h":        90 * time.Minute,
		"250ms":       250 * time.Millisecond,
		"2w":          14 * 24 * time.Hour,
		"0.5":         time.Second / 2,
		"1h0m":        time.Hour,
		"1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4005*time.Millisecond,
	} {
		t.Run(s, func(t *testing.T) {
			if d, err := ParseDuration(s); err != nil || d != want {
				t.Errorf("%q: %v, %v; want %v", s, d, err, want)
			}
		})
	}
	for _, s := range []string{"", "h", "5x", "5m3", "3 m", "-5m", "+5m", "1e3", "5M", "0", "0s", "1..5h", "NaN",
		"0x10", "999999w", "5m ", "1h5"} {
		t.Run(s, func(t *testing.T) {
			if d, err := ParseDuration(s); err == nil {
				t.Errorf("%q was read as %v", s, d)
			}
		})
	}
}

// TestParseSize checks which sizes are accepted, and that a number without a unit is refused.
func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"8G":         8 << 30,
		"512M":       512 << 20,
		"1T":         1 << 40,
		"1.5k":       1536,
		"1048576":    1 << 20,
		"4294967296": 4 << 30,
		"100B":       100,
		"20K":        20 << 10,
		"2GB":        2 << 30,
		"2GiB":       2 << 30,
		"7B":         7,
		"1p":         1 << 50,
	} {
		t.Run(s, func(t *testing.T) {
			if n, err := ParseSize(s); err != nil || n != want {
				t.Errorf("%q: %v, %v; want %v", s, n, err, want)
			}
		})
	}
	for _, s := range []string{"", "G", "8X", "8GG", "8GiBx", "-1", "0", "9999999P", "8 G", "1e3", "KM", "8KM", "8iB",
		"1BB", "16", "100", "1048575", "0.5"} {
		t.Run(s, func(t *testing.T) {
			if n, err := ParseSize(s); err == nil {
				t.Errorf("%q was read as %v", s, n)
			}
		})
	}
	// Nobody means bytes (K10).
	if _, err := ParseSize("20"); err == nil || err.Error() != "20 bytes? Write 20G or 20M" {
		t.Errorf("20: got %v, want an error that shows what to write", err)
	}
}

// TestFormatSize checks that the formatted size is short and that ParseSize returns exactly the
// same number of bytes.
func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0:          "0B",
		1:          "1B",
		1023:       "1023B",
		1024:       "1K",
		20 << 20:   "20M",
		1536 << 20: "1536M",
		8 << 30:    "8G",
		500 << 30:  "500G",
		1<<40 + 1:  "1099511627777B",
		1 << 50:    "1P",
		3 << 60:    "3072P",
	} {
		got := FormatSize(n)
		if back, err := ParseSize(got); got != want || n > 0 && (err != nil || back != n) {
			t.Errorf("%d: %s, want %s, read as %d, %v", n, got, want, back, err)
		}
	}
}

// TestParseDeadline checks that a deadline may be a date or a time, local or with a zone.
func TestParseDeadline(t *testing.T) {
	local := func(h, m, s int) time.Time { return time.Date(2026, 11, 20, h, m, s, 0, time.Local) }
	for s, want := range map[string]time.Time{
		"2026-11-20T18:00":       local(18, 0, 0),
		"2026-11-20 18:00":       local(18, 0, 0),
		"2026-11-20T18:00:05":    local(18, 0, 5),
		"2026-11-20":             local(23, 59, 59),
		"2026-11-20T18:00+02:00": time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		"2026-11-20T18:00:05Z":   time.Date(2026, 11, 20, 18, 0, 5, 0, time.UTC),
	} {
		t.Run(s, func(t *testing.T) {
			if d, err := ParseDeadline(s); err != nil || !d.Equal(want) || d.Location() != time.UTC {
				t.Errorf("%q: %v, %v; want %v", s, d, err, want)
			}
		})
	}
}

// TestSignalNamesAndNumbersAgree checks that each signal has one name and one number.
func TestSignalNamesAndNumbersAgree(t *testing.T) {
	for n := 1; n <= maxSignal; n++ {
		name := SignalName(n)
		if name == "" || SignalNumber(name) != n {
			t.Errorf("%d is %q and back %d", n, name, SignalNumber(name))
		}
	}
	for name, n := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGUSR2": syscall.SIGUSR2,
		"SIGCHLD": syscall.SIGCHLD, "SIGXCPU": syscall.SIGXCPU, "SIGSYS": syscall.SIGSYS, "SIG34": 34, "": 0} {
		t.Run(name, func(t *testing.T) {
			if SignalName(int(n)) != name || SignalNumber(name) != int(n) {
				t.Errorf("the name and the number do not match: %q, %d", name, n)
			}
		})
	}
	for _, s := range []string{"KILL", "sigkill", "SIG9", "SIG065", "SIG65", "SIG0", "SIG", "SIG-1", "SIG+40"} {
		t.Run(s, func(t *testing.T) {
			if n := SignalNumber(s); n != 0 {
				t.Errorf("%q is %d", s, n)
			}
		})
	}
}
