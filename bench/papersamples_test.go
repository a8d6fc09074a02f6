package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSamplesCountAcrossCalls checks that a later call counts what earlier ones measured at the same
// scale, and nothing else.
func TestSamplesCountAcrossCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "papers", "samples.tsv")
	load := func(scale float64) *samples {
		t.Helper()
		s, err := loadSamples(file, scale)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := load(1)
	for _, v := range []values{{"s": 2, "succeeded": 50}, {"s": 4, "succeeded": 70}} {
		if err := first.add("tries", "1", ours, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(0.1).add("tries", "1", ours, values{"s": 9}); err != nil {
		t.Fatal(err)
	}
	again := load(1)
	again.experiment = "tries"
	for _, c := range []struct {
		experiment, of, program string
		want                    int
	}{
		{"tries", "1", ours, 2}, {"tries", "1", theirs, 0}, {"tries", "2", ours, 0}, {"zero", "1", ours, 0},
	} {
		if n := again.count(c.experiment, c.of, c.program); n != c.want {
			t.Errorf("count(%q, %q, %q) = %d, want %d", c.experiment, c.of, c.program, n, c.want)
		}
	}
	if got := again.of("1", ours, "succeeded", plain).text("%.1f"); got != "60.0 ± 14.1" {
		t.Errorf("mean and deviation are %q", got)
	}
	if got := again.conditions("tries"); !strings.HasPrefix(got, "Scale 1, 2 runs each, on ") {
		t.Errorf("conditions are %q", got)
	}
}

// TestDamagedSamplesAreRefused checks that a line that was cut short is an error instead of a value.
func TestDamagedSamplesAreRefused(t *testing.T) {
	for name, line := range map[string]string{
		"too few fields": "tries\t1\n", "no number": strings.Repeat("x\t", 10) + "x\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "samples.tsv")
			if err := os.WriteFile(file, []byte(samplesHeader+line), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := loadSamples(file, 1); err == nil || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("error is %v", err)
			}
		})
	}
}
