package jobs

import "testing"

// A slip is named when there is one near, and nothing is guessed when not.
func TestNearest(t *testing.T) {
	known := []string{"port", "cwd", "max_load", "tries", "LR", "Batch-Size"}
	for s, want := range map[string]string{"prot": "port", "bad": "", "cw": "cwd", "Max-Load": "max_load", "trys": "tries", "x": "", "quite_something_else": "",
		"lr": "LR", "LR": "LR", "batch_size": "Batch-Size", "BATCHSIZE": "Batch-Size",
		"prt": "port", "pier": "", "most": "", "parts": "port", "mx_lod": "max_load", "opt": "", "rptot": "", "rties": "tries", "": ""} {
		if got := Nearest(s, known); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
