package text

import "testing"

// TestTypoIsCorrected checks that a typo near a known word is corrected, and that nothing is
// guessed otherwise.
func TestTypoIsCorrected(t *testing.T) {
	known := []string{"port", "cwd", "max_load", "tries", "LR", "Batch-Size"}
	for s, want := range map[string]string{"prot": "port", "bad": "", "cw": "cwd", "Max-Load": "max_load",
		"trys": "tries", "x": "", "quite_something_else": "",
		"lr": "LR", "LR": "LR", "batch_size": "Batch-Size", "BATCHSIZE": "Batch-Size",
		"prt": "port", "pier": "", "most": "", "parts": "port", "mx_lod": "max_load", "opt": "", "rptot": "",
		"rties": "tries", "": "",
		"load_max": "max_load", "size-batch": "Batch-Size"} {
		t.Run(s, func(t *testing.T) {
			if got := Nearest(s, known); got != want {
				t.Errorf("%q: %q, want %q", s, got, want)
			}
		})
	}
}

// TestListsAreBounded checks that a list names its first words, and counts the others if there are
// several.
func TestListsAreBounded(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b, c": {"a", "b", "c"},
		"a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := List(names, 2); got != want {
			t.Errorf("%q: got %q, want %q", names, got, want)
		}
	}
}

// TestCountsArePlural checks the words after a number, and its thousands.
func TestCountsArePlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs wait", 1: "1 job waits", 2: "2 jobs wait", 1200: "1,200 jobs wait"} {
		if got := Plural(n, "job") + " " + Verb(n, "waits", "wait"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Plural(2, "process"); got != "2 processes" {
		t.Errorf("got %q", got)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 12_345_678: "12,345,678",
		-1_234_567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
