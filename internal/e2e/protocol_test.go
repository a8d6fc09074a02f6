//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/polltest"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas returns the schemas of the input and output lines of the protocol.
func schemas(t *testing.T) (input, output *jsonschema.Schema) {
	t.Helper()
	const file = "../../docs/reference/protocol.schema.json"
	c := jsonschema.NewCompiler()
	for name, to := range map[string]**jsonschema.Schema{"input": &input, "output": &output} {
		s, err := c.Compile(file + "#/$defs/" + name)
		must(t, err)
		*to = s
	}
	return input, output
}

func validate(t *testing.T, s *jsonschema.Schema, line string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	return s.Validate(v)
}

// outputLine is a line of the protocol's output.
type outputLine struct {
	State, ID, UID, Error, Do, Output, Reason string
	Job, Line, Round                          int
}

// TestProtocolMatchesItsSchema checks jobs as shell lines and as objects, ids, cancel and requeue,
// and answers to wrong lines. All lines must match the schema of docs/reference/protocol.md.
func TestProtocolMatchesItsSchema(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	input, output := schemas(t)
	cmd := exec.Command(program, l.runArgs(2, "--json", "--output", "--tries", "1", "-")...)
	in, _ := cmd.StdinPipe()
	p, out := l.startPiped(cmd)
	lines := bufio.NewScanner(out)
	var all []outputLine
	next := func() outputLine {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("no more lines: %v", lines.Err())
		}
		if err := validate(t, output, lines.Text()); err != nil {
			t.Errorf("the line does not match its schema: %v", err)
		}
		var s outputLine
		must(t, json.Unmarshal(lines.Bytes(), &s))
		all = append(all, s)
		return s
	}
	send := func(ok bool, text string) {
		t.Helper()
		if strings.HasPrefix(text, `{"`) {
			if err := validate(t, input, text); (err == nil) != ok {
				t.Errorf("%s: %v", text, err)
			}
		}
		io.WriteString(in, text+"\n")
	}
	send(true, `echo shell`)
	if s := next(); s.Job != 1 || s.Output != "shell\n" || s.ID != "" || s.State != "succeeded" {
		t.Errorf("got %+v, want job 1 with its output", s)
	}
	send(true, `{"v":1,"id":"a","command":"echo $DCS_PARAM_x `+
		`$Y","params":{"x":0.5},"env":{"Y":"y"},"tags":[],"timeout":"2h","mem":1048576,"speculate":false}`)
	if s := next(); s.Job != 2 || s.Output != "0.5 y\n" || s.ID != "a" {
		t.Errorf("got %+v, want job 2 with the id a and its output", s)
	}
	send(false, `{"id":"wrong","comand":"true"}`)
	send(false, `{"id":"old","v":2,"command":"true"}`)
	send(true, `{"cancel":"nobody"}`)
	for i, want := range []outputLine{{Line: 3, ID: "wrong"}, {Line: 4, ID: "old"}, {Line: 5}} {
		if s := next(); s.Line != want.Line || s.ID != want.ID || s.Error == "" {
			t.Errorf("answer %d: %+v", i, s)
		}
	}
	send(true, `{"id":"long","command":"sleep 600"}`)
	send(true, `{"id":"behind","command":"true","after":["long"]}`)
	send(true, `{"id":"q","cancel":["long"]}`)
	got := map[string]outputLine{}
	for range 3 {
		s := next()
		got[s.ID] = s
	}
	if got["q"].Do != "cancel" || got["long"].State != "canceled" ||
		got["long"].Reason != "canceled by its submitter" || got["behind"].State != "skipped" {
		t.Errorf("got %+v, want the long job canceled and the one behind it skipped", got)
	}
	send(true, `{"requeue":[1],"id":"again"}`)
	for range 2 {
		if s := next(); s.ID == "again" && s.Do != "requeue" || s.ID == "" && (s.Job != 1 || s.Round != 2) {
			t.Errorf("got %+v, want the answer to requeue and the second round of job 1", s)
		}
	}
	in.Close()
	for lines.Scan() {
		t.Errorf("one more: %s", lines.Text())
	}
	if code := p.wait().code; code != 1 {
		t.Errorf("exit %d", code)
	}
}

// startPiped is startCommand for a command whose standard output the test reads.
func (l *lab) startPiped(cmd *exec.Cmd) (*process, io.Reader) {
	l.t.Helper()
	r, w, err := os.Pipe()
	must(l.t, err)
	l.t.Cleanup(func() { r.Close() })
	cmd.Stdout = w
	defer w.Close()
	return l.startCommand(cmd), r
}

// TestSubmitterFarAheadAndReaderStalled checks a submitter that is 30,000 jobs ahead and reads
// nothing: lines are still read, and jobs run. Jobs sent again after a kill run once, and each job
// has a result.
func TestSubmitterFarAheadAndReaderStalled(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 1)
	const n, bad = 30_000, 2_000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{\"id\":\"%d\",\"command\":\"[ $DCS_JOB_ID -gt 200 -a $DCS_JOB_ID != 400 ] || "+
			"echo $DCS_ATTEMPT >> %s; exit 0\"}\n", i+1, l.path("ran/$DCS_JOB_ID"))
	}
	text.WriteString(strings.Repeat("{\"nothing\":1}\n", bad))
	l.writeTaggedJobs(0, "") // creates the directory
	cmd := exec.Command(program, l.runArgs(2, "--json", "--max-slots", "2", "-")...)
	in, _ := cmd.StdinPipe()
	p, out := l.startPiped(cmd)
	// returns when all but the last lines were read
	if _, err := io.WriteString(in, text.String()+"touch "+l.path("read")+"\n"); err != nil {
		t.Fatal(err)
	}
	l.until("more jobs have ended than the pipe holds results of",
		func() bool { return l.numFiles("ran/400") == 1 })
	p.signal(syscall.SIGKILL)
	seen := map[string]bool{}
	refused := 0
	take := func(out io.Reader) {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s outputLine
			if json.Unmarshal(lines.Bytes(), &s) != nil {
				continue // an incomplete line
			}
			if s.Error != "" {
				refused++
			} else if s.ID != "" {
				seen[s.ID] = true
			}
		}
	}
	take(out)
	again := exec.Command(program, "resume", "--no-tui", "--json", l.path("run"), "-")
	again.Stdin = strings.NewReader(strings.Join(strings.SplitAfter(text.String(), "\n")[:300], "") +
		"{\"cancel\":true}\n")
	p, out = l.startPiped(again)
	take(out)
	if code := p.wait().code; code != 130 {
		t.Errorf("exit %d", code)
	}
	for id := 1; id <= 300; id++ {
		if !seen[fmt.Sprint(id)] {
			t.Errorf("job %d has no result", id)
		}
	}
	l.checkAttemptsRanOnce(100)
}
