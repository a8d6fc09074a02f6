package grid

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestExamples checks that the examples are parsed without warnings, have the number of jobs that
// they state, and that their first commands run.
func TestExamples(t *testing.T) {
	for file, want := range map[string]int{"svm.txt": 30, "darts.txt": 20, "forms.txt": 20, "search.txt": 60} {
		f, err := os.Open("../examples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(f, file)
		f.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		if n, err := tmpl.Count(); n != want || err != nil || len(tmpl.Warnings) > 0 {
			t.Errorf("%s: %d jobs, want %d; %v, warnings %v", file, n, want, err, tmpl.Warnings)
		}
		for s, err := range tmpl.Jobs() {
			if errors.Is(err, errLearns) {
				s = tmpl.Trial(1, make([]float64, len(tmpl.Space)))
			}
			out, err := exec.Command("/bin/sh", "-c", s.Command).CombinedOutput()
			if text := string(out); err != nil || !strings.HasPrefix(text, "svm -train -kernel rbf -C 0.001 -gamma 0\n") &&
				!strings.HasPrefix(text, "pi=3.") && !strings.HasPrefix(text, "train [rate] --model ") && text != "loss=308.129096\n" {
				t.Errorf("%s: %s: %v\n%s", file, s.Command, err, out)
			}
			break
		}
	}
}
