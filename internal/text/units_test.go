package text

import (
	"math"
	"testing"
	"time"
)

// TestDurations checks each format of durations at the edges of its ranges.
func TestDurations(t *testing.T) {
	const s, day = time.Second, 24 * time.Hour
	for _, c := range []struct {
		name   string
		format func(time.Duration) string
		want   map[time.Duration]string
	}{
		{"Duration", Duration, map[time.Duration]string{
			0: "0 ms", 1: "<1 ms", 1500 * time.Microsecond: "2 ms", 999 * time.Millisecond: "999 ms",
			999600 * time.Microsecond: "1.00 s",
			1250 * time.Millisecond:   "1.25 s", 9996 * time.Millisecond: "10.0 s", 42 * s: "42.0 s",
			59960 * time.Millisecond: "1m 00s",
			125 * s:                  "2m 05s", 3599600 * time.Millisecond: "1h 00m", 187 * time.Minute: "3h 07m",
			52 * time.Hour: "2d 04h",
			-s:             "-1.00 s", math.MinInt64: "-53375d 23h",
		}},
		{"Span", Span, map[time.Duration]string{
			-s: "0 s", 0: "0 s", 15400 * time.Millisecond: "15 s", 119 * s: "119 s", 2 * time.Minute: "2 min",
			3599 * s: "60 min", 119 * time.Minute: "119 min",
			2 * time.Hour: "2 h", 34*time.Hour + 10*time.Minute: "34h 10m", 99*time.Hour + 59*time.Minute +
				59*s: "100 h", 100 * time.Hour: "4 d", 1500 * day: "1500 d",
		}},
		{"Clock", Clock, map[time.Duration]string{
			-time.Hour: "0:00", 0: "0:00", 42 * s: "0:42", 72*time.Minute + 4*s: "1:12:04", 100 * time.Hour: "4d 04:00",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for d, want := range c.want {
				if got := c.format(d); got != want {
					t.Errorf("%d: got %q, want %q", d, got, want)
				}
			}
		})
	}
}

// TestSizes checks each format of sizes at the edges of its ranges.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name   string
		format func(int64) string
		want   map[int64]string
	}{
		{"Size", Size, map[int64]string{
			-1: "-1 B", 0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB",
			1<<20 - 1: "1 MiB", 999 << 20: "999 MiB", 1023 << 20: "1023 MiB",
			38 << 20: "38 MiB", 12 << 30: "12 GiB", 32050 << 20: "31.3 GiB", 100 << 30: "100 GiB",
			math.MaxInt64: "8 EiB",
		}},
		{"ShortSize", ShortSize, map[int64]string{
			-1: "0", 0: "0", 1023: "1023", 1024: "1K", 1536: "1.5K", 10 << 10: "10K", 64 << 30: "64G", 1<<30 - 1: "1G",
			1023 << 30: "1023G", math.MaxInt64: "8E",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n, want := range c.want {
				if got := c.format(n); got != want {
					t.Errorf("%d: got %q, want %q", n, got, want)
				}
			}
		})
	}
}

// TestNumbers checks the short formats of numbers and rates at the edges of their ranges.
func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ShortNumber(9999), "9,999"}, {ShortNumber(99999), "99999"}, {ShortNumber(123_456), "123k"},
		{ShortNumber(12_345_678), "12M"}, {ShortNumber(math.MaxInt), "9999G"},
		{Rate(0), "0/min"}, {Rate(math.NaN()), "0/min"}, {Rate(41.0 / 60), "41/min"}, {Rate(12), "12/s"},
		{Rate(2500), "2,500/s"}, {Rate(3.5 / 3600), "3.5/h"},
	} {
		t.Run(c.got, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

// TestShortening checks that a shortened text ends in …, that no character is cut in two, and that a
// text that fits stays as it is.
func TestShortening(t *testing.T) {
	for _, c := range []struct {
		name, got, want string
	}{
		{"fits", ShortenBytes("abcd", 4), "abcd"},
		{"ASCII", ShortenBytes("abcdef", 5), "ab…"},
		{"between two characters", ShortenBytes("aäbcde", 6), "aä…"},
		{"in a character", ShortenBytes("abäcde", 6), "ab…"},
		{"only the ellipsis", ShortenBytes("äöü", 3), "…"},
		{"not UTF-8", ShortenBytes("\xff\xfe\xff\xfe\xff\xfe", 5), "\xff\xfe…"},
		{"runes fit", ShortenTo("äöü", 3), "äöü"},
		{"runes", ShortenTo("äöüß", 3), "äö…"},
		{"after a word", ShortenTo("the helper on ws01 cannot write to /home/ada/out", 44),
			"the helper on ws01 cannot write to…"},
		{"exactly after a word", ShortenTo("cannot write to /home/ada", 16), "cannot write to…"},
		{"long word", ShortenTo("cannot write to /home/ada/out/of/the/last/run", 40),
			"cannot write to /home/ada/out/of/the/la…"},
		{"short text", ShortenTo("no /home/ada", 9), "no /home…"},
		{"cleaned, after a word", Clean("the helper on ws01\ncannot write to /home/ada/out", 44),
			"the helper on ws01␊cannot write to…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

// TestSubjectIsNotNamedTwice checks that a name is removed only where it is the whole first word.
func TestSubjectIsNotNamedTwice(t *testing.T) {
	for _, c := range []struct{ text, subject, want string }{
		{"ws03 is up", "ws03", "is up"}, {"ws03: refused", "ws03", "refused"}, {"ws03x is up", "ws03", "ws03x is up"},
		{"ws03:22 refuses", "ws03", "ws03:22 refuses"}, {" x", "", " x"},
	} {
		t.Run(c.text, func(t *testing.T) {
			if got := WithoutSubject(c.text, c.subject); got != c.want {
				t.Errorf("without %q: got %q, want %q", c.subject, got, c.want)
			}
		})
	}
}
