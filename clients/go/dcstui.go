// Package dcstui runs shell commands on the hosts of a dcs-tui run and returns their results in
// completion order. It starts dcs-tui as a child process and speaks the protocol of
// docs/reference/protocol.md. If that process is killed, the client resumes the run, and every job still gets
// one result.
//
// The package is this file and needs only the standard library, so it can be copied.
package dcstui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Options configure how dcs-tui is started. The zero value runs jobs on this machine.
type Options struct {
	Program string   // default: dcs-tui
	Args    []string // flags of dcs-tui run, such as --hosts hosts.toml
	// Dir is the run directory. The default is dcs-runs/go-TIME. If it contains a run, that run is
	// resumed: a program that is restarted and submits the same ids again gets the result of each,
	// and nothing runs twice.
	Dir    string
	Output bool      // store the output of each job in Result.Output
	Log    io.Writer // receives the messages of dcs-tui; discarded if nil
}

// Job is a command to run.
type Job struct {
	ID      string // unique in the run; Submit chooses one if ""
	Command string
	Params  map[string]string
	// Options are additional keys of a job in docs/reference/protocol.md, such as "timeout": "2h".
	Options map[string]any
}

// Result is the result of a job. Its fields are those of the protocol.
type Result struct {
	ID             string
	Job            int    // its number in the run
	UID            string // of this round of the job
	Round          int    // 1, or more after a requeue
	State          string // succeeded, failed, timed_out, canceled, skipped, or refused (it never was part of the run)
	Exit           *int   // nil if it did not exit by itself
	Signal         string // SIGKILL, …
	Reason         string // in plain text
	Command        string
	Params         map[string]string
	Attempt        string // the attempt that counts, such as 17.2
	Host           string
	Attempts       int
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	MaxRSSBytes    int64   `json:"max_rss_bytes"`
	Stdout, Stderr string  // paths of files; host:path if only the host has them
	Output         string  // set with Options.Output
	OutputError    string  `json:"output_error"` // why there is no Output
	OutputBytes    int64   `json:"output_bytes"` // its size if it is too large; Stdout has it
}

// OK reports whether the job succeeded.
func (r *Result) OK() bool { return r.State == "succeeded" }

// StoppedError is returned if dcs-tui ended before the jobs were over, and was not killed: somebody
// stopped it, or no host could be used.
type StoppedError struct {
	Code int    // exit code of dcs-tui
	Text string // the last message of dcs-tui
	Dir  string // the run directory, which dcs-tui resume continues
}

// Error returns the exit code, the last message, and the run directory.
func (e *StoppedError) Error() string {
	return fmt.Sprintf("dcs-tui ended with code %d: %s (run directory %s)", e.Code, e.Text, e.Dir)
}

// Client is a run. Its methods are safe for concurrent use.
type Client struct {
	opts    Options
	results chan *Result  // closed at the end of the run
	closed  chan struct{} // closed by Close
	err     error         // why the run ended; set before results is closed
	cmd     *exec.Cmd     // owned by the goroutine serve
	out     io.Reader
	said    *tail

	mu     sync.Mutex
	number int
	jobs   map[string]*job
	chosen map[string]bool // ids that the caller has chosen

	write  sync.Mutex
	in     io.WriteCloser
	noMore bool // CloseInput was called
	close  sync.Once
}

// job is a job that has no result yet.
type job struct {
	number   int
	line     []byte
	canceled bool
}

// Start starts dcs-tui.
func Start(o Options) (*Client, error) {
	if o.Program == "" {
		o.Program = "dcs-tui"
	}
	if o.Dir == "" {
		o.Dir = filepath.Join("dcs-runs", "go-"+time.Now().Format("20060102-150405.000000"))
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o700); err != nil {
		return nil, err
	}
	c := &Client{opts: o, results: make(chan *Result), closed: make(chan struct{}), jobs: map[string]*job{},
		chosen: map[string]bool{}}
	if err := c.start(); err != nil {
		return nil, err
	}
	go c.serve()
	return c, nil
}

// start starts dcs-tui and sends it the jobs that have no result. dcs-tui does not run a job again
// that the run already contains.
func (c *Client) start() error {
	args := append([]string{"run", "--no-tui", "--json", "--run-dir", c.opts.Dir}, c.opts.Args...)
	if _, err := os.Stat(filepath.Join(c.opts.Dir, "run.toml")); err == nil {
		args = []string{"resume", "--no-tui", "--json", c.opts.Dir}
	}
	if c.opts.Output {
		args = append(args, "--output")
	}
	cmd := exec.Command(c.opts.Program, append(args, "-")...)
	c.said = &tail{to: c.opts.Log}
	cmd.Stderr = c.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.out = cmd, out
	c.mu.Lock()
	pending := slices.SortedFunc(maps.Values(c.jobs), func(a, b *job) int { return a.number - b.number })
	var canceled []string
	for id, j := range c.jobs {
		if j.canceled {
			canceled = append(canceled, id)
		}
	}
	c.mu.Unlock()
	c.write.Lock()
	c.in = in
	go func() { // dcs-tui reads its input concurrently
		defer c.write.Unlock()
		for _, j := range pending {
			in.Write(j.line) // an error means that the process has ended, which serve notices
		}
		if len(canceled) > 0 {
			in.Write(lineOf(map[string]any{"cancel": canceled}))
		}
		if c.noMore {
			in.Close()
		}
	}()
	return nil
}

func lineOf(keys map[string]any) []byte {
	line, err := json.Marshal(keys)
	if err != nil {
		return nil
	}
	return append(line, '\n')
}

// Submit adds a job to the run and returns its id. It waits only for the pipe to dcs-tui, which
// accepts jobs faster than it runs them.
func (c *Client) Submit(j Job) (id string, err error) {
	keys := map[string]any{}
	maps.Copy(keys, j.Options)
	keys["command"] = j.Command
	if len(j.Params) > 0 {
		keys["params"] = j.Params
	}
	c.mu.Lock()
	c.number++
	isChosen := j.ID != ""
	if !isChosen {
		j.ID = "go-" + strconv.Itoa(c.number)
	}
	keys["id"] = j.ID
	line := lineOf(keys)
	if line == nil || c.jobs[j.ID] != nil || c.chosen[j.ID] { // a run has each id once
		c.mu.Unlock()
		return "", fmt.Errorf("job %q: its id is that of an earlier job, or its options have no JSON", j.ID)
	}
	if isChosen {
		c.chosen[j.ID] = true
	}
	c.jobs[j.ID] = &job{number: c.number, line: line}
	c.mu.Unlock()
	return j.ID, c.send(line)
}

// Cancel cancels jobs. Each still gets a result.
func (c *Client) Cancel(ids ...string) error {
	c.mu.Lock()
	for _, id := range ids {
		if j := c.jobs[id]; j != nil {
			j.canceled = true
		}
	}
	c.mu.Unlock()
	return c.send(lineOf(map[string]any{"cancel": ids}))
}

// send writes a line. If dcs-tui was killed, start sends what matters again.
func (c *Client) send(line []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.noMore {
		return errors.New("the input of the run is closed")
	}
	c.in.Write(line)
	return nil
}

// CloseInput announces that no more jobs will be submitted. After the last result, Next returns
// io.EOF.
func (c *Client) CloseInput() {
	c.write.Lock()
	defer c.write.Unlock()
	if !c.noMore {
		c.noMore = true
		c.in.Close()
	}
}

// Next returns the next result in completion order. It blocks until there is one. After CloseInput
// and the last result, the error is io.EOF.
func (c *Client) Next(ctx context.Context) (*Result, error) {
	select {
	case r, ok := <-c.results:
		if !ok {
			return nil, c.err
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Results yields the same results as Next. An error is yielded as the last pair, except io.EOF,
// which only ends the sequence.
func (c *Client) Results(ctx context.Context) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		for {
			r, err := c.Next(ctx)
			if err == io.EOF || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Close cancels the jobs that are not over and waits until dcs-tui has ended.
func (c *Client) Close() error {
	c.close.Do(func() {
		close(c.closed)
		c.mu.Lock()
		left := slices.Collect(maps.Keys(c.jobs))
		c.mu.Unlock()
		if len(left) > 0 {
			c.Cancel(left...)
		}
		c.CloseInput()
	})
	for range c.results {
	}
	if c.err != io.EOF {
		return c.err
	}
	return nil
}

// maxDeaths is how many times in a row dcs-tui may be killed before it prints anything.
const maxDeaths = 10

// serve reads results until the run is over, and resumes it when dcs-tui is killed.
func (c *Client) serve() {
	defer close(c.results)
	for deaths := 0; ; {
		if c.read() {
			deaths = 0
		}
		c.cmd.Wait() // its state has more information than the error
		switch code := c.cmd.ProcessState.ExitCode(); {
		case code == 0 || code == 1 || code == 130: // all jobs are over
			c.err = io.EOF
			return
		case code >= 0 || deaths == maxDeaths:
			c.err = &StoppedError{code, c.said.last(), c.opts.Dir}
			return
		}
		deaths++
		if deaths > 1 {
			time.Sleep(time.Second)
		}
		if err := c.start(); err != nil {
			c.err = err
			return
		}
	}
}

// read passes results on until dcs-tui ends. It reports whether it read any line.
func (c *Client) read() (any bool) {
	r := bufio.NewReader(c.out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return any // dcs-tui sends an incomplete line again
		}
		any = true
		var l struct {
			Result
			Error string
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		if l.Error != "" && l.State == "" {
			l.State, l.Reason = "refused", l.Error
		}
		c.mu.Lock()
		// otherwise it is somebody else's job, a repeated result, or a reply
		known := l.State != "" && c.jobs[l.ID] != nil
		delete(c.jobs, l.ID)
		if l.State == "refused" {
			delete(c.chosen, l.ID)
		}
		c.mu.Unlock()
		if !known {
			continue
		}
		select {
		case c.results <- &l.Result:
		case <-c.closed:
		}
	}
}

// tail is a writer that writes text to another writer and keeps its last line.
type tail struct {
	to   io.Writer
	mu   sync.Mutex
	line []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.line = append(t.line, b...)
	if i := bytes.LastIndexByte(bytes.TrimRight(t.line, "\n"), '\n'); i >= 0 {
		t.line = bytes.Clone(t.line[i+1:])
	}
	t.mu.Unlock()
	return t.to.Write(b)
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.line))
}
