package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestGPUs checks that gpus= accepts a whole number or 0.5, and that jobs.jsonl and requests keep
// it (T3).
func TestGPUs(t *testing.T) {
	for text, want := range map[string]jobs.GPUs{"0.5": 0.5, "0": 0, "1": 1, "1024": 1024, "1.5": -1, "0.25": -1, "1025": -1, "-1": -1, "NaN": -1, ".5": -1} {
		specs, err := jobs.Parse(strings.NewReader("#DCS gpus="+text+"\ntrue\n"), "f", false, 1)
		if (err == nil) != (want >= 0) || err == nil && specs[0].GPUs != want {
			t.Errorf("gpus=%s: %v, %v", text, specs, err)
			continue
		}
		if err != nil {
			continue
		}
		var again jobs.Spec
		if err := json.Unmarshal(jobs.AppendSpecJSON(nil, specs[0]), &again); err != nil || again.GPUs != want {
			t.Errorf("%s became %v, %v", text, again, err)
		}
	}
	for text, ok := range map[string]bool{`{"gpus":0.5}`: true, `{"gpus":3}`: true, `{"gpus":0.7}`: false, `{"gpus":-1}`: false, `{"gpus":1e9}`: false} {
		var c jobs.Change
		if err := json.Unmarshal([]byte(text), &c); (err == nil && c.Check() == nil) != ok {
			t.Errorf("%s: %v, %v, want ok %v", text, err, c.Check(), ok)
		}
	}
}
