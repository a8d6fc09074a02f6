package outputs

import (
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// E3: of a figure that no output has it is said what was seen instead: other names, other
// capitals, the standard error. What some output has needs no hint.
func TestHints(t *testing.T) {
	l := newLab(t)
	for range 12 {
		l.job("epoch 1 of 3\nAcc=0.9 loss: 0.1\n{\"f1\": 2}\nsee http://x/y at 12:30\n")
	}
	l.write(strings.TrimSuffix(jobs.AttemptFile(l.run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut), string(jobs.FileOut))+string(jobs.FileErr), "score=7\nRecall: 3\n")
	for i := range l.list {
		l.list[i].Stderr = strings.TrimSuffix(l.list[i].Stdout, string(jobs.FileOut)) + string(jobs.FileErr)
	}
	for column, want := range map[string]string{
		"acc":                 "no job printed acc=…; there is Acc, in other capitals: acc=key:Acc; seen: Acc, loss, f1",
		"a=key:ACC":           "no job printed ACC=…; there is Acc, in other capitals: a=key:Acc; seen: Acc, loss, f1",
		"nothing":             "no job printed nothing=…; seen: Acc, loss, f1",
		"score":               "no job printed score=…; it stands in the standard error (job 2), which is not searched: 2>&1 in the command adds it",
		"recall":              "no job printed recall=…; there is Recall in the standard error, in other capitals: recall=key:Recall; seen: Acc, loss, f1",
		"x=json:test.F1":      "no job printed a line of JSON with test.F1; there is f1, in other capitals: x=key:f1; seen: Acc, loss, f1",
		"x=re:precision (.*)": "no job printed a line that matches re:precision (.*); seen: Acc, loss, f1",
		"loss":                "",
		"x=file:out.txt":      "",
	} {
		r := l.reader(column)
		f := l.read(r)
		before := l.disk.opened.Load()
		if got := strings.Join(r.Hints(l.list, f.Values), "|"); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
		if n := l.disk.opened.Load() - before; n > 2*maxSamples {
			t.Errorf("%s: %d files were opened for a hint", column, n)
		}
	}
	silent := newLab(t)
	silent.job("done\n")
	r := silent.reader("acc")
	if got := r.Hints(silent.list, silent.read(r).Values); !slices.Equal(got, []string{"no job printed acc=…; no NAME=VALUE was seen in 1 output"}) {
		t.Errorf("%q", got)
	}
	if got := r.Hints(nil, nil); got != nil {
		t.Errorf("of no job: %q", got)
	}
}
