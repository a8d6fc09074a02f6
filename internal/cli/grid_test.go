package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"dcs-tui/grid"
	"dcs-tui/jobs/rundir"
)

// TestTemplateIsKept checks that the template stored in run.toml produces the same jobs again, from
// any job on, for arbitrary bytes, and the same @result lines.
func TestTemplateIsKept(t *testing.T) {
	for _, text := range []string{
		"a [C]\n[C] 1..5\n@result acc json:a\n",
		"a [C] \"'''\\\\\n[C] 1..5\n@result acc\n",
		"a [C] \x98\xff\x01\x1b\u2028\n[C] 1..5\n@result acc re:(\xff)\n",
		"a [C] \r\r\r\n[C] 1..5\n@result acc\n",
		"a '[C]\n[C] 1..5\n@result acc", // an unclosed quote, for another shell
	} {
		first, err := grid.Config{}.Parse(context.Background(), strings.NewReader(text), "t.txt")
		must(t, err)
		run, err := rundir.Create(t.TempDir(), "r",
			rundir.Settings{Options: map[string]any{rundir.OptionSource: first.Source(10)}})
		must(t, err)
		run, err = rundir.Open(run.Dir)
		must(t, err)
		kept, _ := run.Settings.Options[rundir.OptionSource].(string)
		again, err := grid.ReadSource(kept)
		must(t, err)
		same(t, "the template", again.Text(), first.Text())
		same(t, "@result", again.Results[0], first.Results[0])
		for have := range 7 {
			next, err := grid.RemainingJobs(kept, have)
			must(t, err)
			for s := range first.Jobs() {
				if int(s.ID) > have {
					rest, err := next()
					must(t, err)
					same(t, "a job", rest.Command+rest.File, s.Command+s.File)
				}
			}
			_, err = next()
			same(t, "the end", err, io.EOF)
		}
	}
	if _, err := grid.RemainingJobs("not ours", 0); err == nil {
		t.Error("nonsense was taken for a template")
	}
}
