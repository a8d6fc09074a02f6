package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// outputTimeout bounds one piece of output that comes over a link.
const outputTimeout = 30 * time.Second

// resultPrinter writes finished jobs to standard output: a line of JSON for each, or what the
// jobs printed.
type resultPrinter struct {
	out  *os.File
	con  *console // to be moved out of the way when out is a terminal
	tty  bool
	json bool
	run  *run.Run
	buf  []byte
	with bool       // with json: each result has what its job printed
	mu   sync.Mutex // of out: one line is written at a time
	tag  bool       // each line of output begins with the values of the job

	// With order, results wait in held until those of all jobs before next are printed.
	order bool
	held  map[jobs.ID]*results.Result
	next  jobs.ID
}

func newResultPrinter(a *app, f *runFlags, r *run.Run) *resultPrinter {
	return &resultPrinter{out: a.stdout, con: a.con, tty: term.IsTerminal(int(a.stdout.Fd())), json: f.json, with: f.json && f.output, run: r,
		tag: f.tag, order: f.order, held: map[jobs.ID]*results.Result{}, next: 1}
}

// Print writes one result whole, and those that waited for it. After an error part of it
// may have been written.
func (p *resultPrinter) Print(r *results.Result) error {
	if !p.order || r.Job < p.next {
		return p.print(r)
	}
	own := *r
	p.held[r.Job] = &own
	for p.held[p.next] != nil {
		r := p.held[p.next]
		delete(p.held, p.next)
		p.next++
		if err := p.print(r); err != nil {
			return err
		}
	}
	return nil
}

// printHeld prints the results that wait for others, which do not come.
func (p *resultPrinter) printHeld() error {
	for _, id := range slices.Sorted(maps.Keys(p.held)) {
		if err := p.print(p.held[id]); err != nil {
			return err
		}
	}
	return nil
}

func (p *resultPrinter) print(r *results.Result) error {
	if p.json {
		if p.with && r.Stdout != "" {
			own := *r // others have r, too
			own.Output, own.OutputErr = p.wholeOutput(r)
			r = &own
		}
		p.buf = r.AppendJSON(p.buf[:0])
		return p.write(p.buf)
	}
	if r.Stdout == "" {
		return nil // it never ran
	}
	if err := p.output(r); err != nil {
		return fmt.Errorf("job %d: %w", r.Job, err)
	}
	return nil
}

// reply writes what a line of the input has come to.
func (p *resultPrinter) reply(r *run.Reply) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.write(append(line, '\n'))
}

// maxOutput bounds the output in a result, in bytes.
const maxOutput = 32 << 20

// wholeOutput returns what a job has printed.
func (p *resultPrinter) wholeOutput(r *results.Result) ([]byte, error) {
	out := []byte{}
	for {
		piece, size, err := p.readOutput(r, int64(len(out)))
		switch {
		case err != nil:
			return nil, err
		case size > maxOutput:
			return nil, fmt.Errorf("it has %d bytes, more than %d MiB: read it from stdout", size, maxOutput>>20)
		}
		if out = append(out, piece...); len(piece) == 0 || int64(len(out)) >= size {
			return out, nil
		}
	}
}

// readOutput reads a piece of what a job has printed, and the size of the whole.
func (p *resultPrinter) readOutput(r *results.Result, at int64) ([]byte, int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), outputTimeout)
	defer cancel()
	piece, size, err := p.run.Output(ctx, r.Attempt, jobs.FileOut, at, hosts.MaxChunk)
	if err != nil {
		err = fmt.Errorf("cannot read its output: %w", err)
	}
	return piece, size, err
}

// tagOf returns what --tag puts before each line of a job's output.
func tagOf(r *results.Result) string {
	var values []string
	for _, v := range r.Params {
		values = append(values, v.Value)
	}
	return cmp.Or(strings.Join(values, " "), r.Name, r.Command)
}

// output copies the job's stdout in pieces, so that a gigabyte needs no memory.
func (p *resultPrinter) output(r *results.Result) error {
	clean := lineCleaner{asIs: !p.tty}
	if p.tag {
		clean.tag = tagOf(r)
	}
	for at := int64(0); ; {
		piece, size, err := p.readOutput(r, at)
		if err != nil {
			return err
		}
		at += int64(len(piece))
		last := len(piece) == 0 || at >= size
		if p.tty || p.tag {
			piece = clean.next(piece, last)
		}
		if err := p.write(piece); err != nil || last {
			return err
		}
	}
}

// write writes all of b. While the disk has no room for it, write reports that and waits. The
// run continues in the meantime. Only a person who asks to stop ends the wait.
func (p *resultPrinter) write(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tty && len(b) > 0 {
		return p.con.Suspend(func() error { _, err := p.out.Write(b); return err })
	}
	for waited := false; len(b) > 0; {
		n, err := p.out.Write(b)
		b = b[n:]
		if err == nil {
			if waited {
				p.con.Line("results are written again")
			}
			return nil
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		if !waited {
			waited = true
			p.con.Line("results wait until standard output has room: " + text.Line(err.Error()))
		}
		select {
		case <-p.run.Stopping():
			return err
		case <-time.After(time.Second):
		}
	}
	return nil
}

// lineCleaner makes pieces of a job's output fit for the terminal, line by line:
// a piece may end in the middle of a character.
type lineCleaner struct {
	rest []byte
	asIs bool   // for a file: lines are not cleaned
	tag  string // before each line, and a tab
	open bool   // the last line had no end
}

// maxHeld is the number of bytes of a line without an end that are held back.
const maxHeld = 64 << 10

func (l *lineCleaner) next(piece []byte, last bool) []byte {
	l.rest = append(l.rest, piece...)
	var out []byte
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		out = append(l.append(out, l.rest[:i]), '\n')
		l.rest, l.open = l.rest[i+1:], false
	}
	if len(l.rest) > 0 && (last || len(l.rest) > maxHeld) {
		out = l.append(out, l.rest)
		l.rest, l.open = nil, true
	}
	if last && l.open && (!l.asIs || l.tag != "") {
		out = append(out, '\n') // what comes next begins at the margin
	}
	return out
}

// append appends a line, or what there is of it.
func (l *lineCleaner) append(out, line []byte) []byte {
	if l.tag != "" && !l.open {
		out = append(append(out, jobs.Clean(l.tag, 0)...), '\t')
	}
	if l.asIs {
		return append(out, line...)
	}
	return append(out, jobs.Clean(string(bytes.TrimSuffix(line, []byte("\r"))), 0)...)
}

// summary describes how a run has ended.
type summary struct {
	*run.Outcome
	app       *app
	words     map[string]runview.HostWord // the last event of each host
	flags     *runFlags
	providers []*hosts.Provider // for the price of instances
	untaken   bool              // not all results were printed
	notes     []string          // below the headline
	logged    bool              // dispatcher.log has what the dispatcher printed
}

// exitCode returns the exit code of the run, and makes the state of the outcome agree.
func (s *summary) exitCode() int {
	if s.untaken && (s.State == run.Succeeded || s.State == run.Failed) {
		s.State = run.Stopped
	}
	if s.InputErr != nil && (s.State == run.Succeeded || s.State == run.Failed) {
		s.State = run.Stopped
		return exitUsage
	}
	if s.Refused > 0 && s.State == run.Succeeded {
		s.State = run.Failed
	}
	return exitCode(s.State)
}

// print prints the summary.
func (s *summary) print(code int) {
	if s.InputErr != nil {
		s.app.complain(text.Errorf("%w", s.InputErr).WithAdvice("the input was read no further: %s; feed the rest to a new run", runview.Came(s.Table)))
	}
	s.app.con.Line(s.lines(code)...)
}

// lines returns what happened to the run, why jobs failed, and what to type next.
func (s *summary) lines(code int) []string {
	if s.Finish.How == sched.Fenced { // what happened to the jobs since is not known here
		return append([]string{"", s.headline(code)}, s.advice()...)
	}
	lines := append([]string{"", s.headline(code)}, s.notes...)
	lines = append(lines, summaryLines(s.app.con, s.Table, false)...)
	if text := s.efficiency(); text != "" {
		lines = append(lines, text)
	}
	if s.Refused > 0 {
		lines = append(lines, jobs.Plural(s.Refused, "line")+" of standard input "+jobs.Verb(s.Refused, "was", "were")+" not accepted")
	}
	lines = append(lines, instanceLines(s.Table, s.providers)...)
	lines = append(lines, hostTrouble(s.Table, s.words)...)
	if s.Deleted {
		return append(lines, s.deletedAdvice()...)
	}
	if s.Finish.How == sched.AllDone && s.Finish.Why != "" {
		lines = append(lines, text.Line(s.Finish.Why))
	}
	lines = append(lines, logLines(s.Run, s.logged)...)
	if n := s.Keeping; n > 0 {
		lines = append(lines, "      "+jobs.Plural(n, "host")+" without that directory kept them: dcs-tui fetch "+refTo(s.Run)+" copies them")
	}
	return append(lines, s.advice()...)
}

func (s *summary) headline(code int) string {
	color, mark, msg := yellow, s.app.con.Glyph("…", "~"), ""
	switch {
	case s.Copied:
		msg = fmt.Sprintf("the hosts have served dispatcher %d of this run, which %s does not know: the directory is a copy, or was restored from an earlier state",
			s.Finish.Epoch, text.Line(s.Run.Dir))
	case s.Finish.How == sched.Fenced:
		msg = s.Finish.Why
	case s.Finish.How == sched.NoHosts:
		color, mark = red, s.app.con.Glyph("✗", "x")
		msg = "no host could be used: " + strings.TrimPrefix(s.Finish.Why, "no host could be used: ")
		if s.Hosts != nil {
			msg = noHostsText(s.Hosts)
		}
	case code == exitOK:
		color, mark, msg = green, s.app.con.Glyph("✓", "+"), "all jobs succeeded"
		if s.Table.Counts[jobs.Canceled] > 0 {
			msg += ", or were ended by the search"
		}
		if s.Input.Cut() {
			msg = cameHeadline(s.Table)
		}
	case code == exitCanceled:
		color, mark, msg = yellow, s.app.con.Glyph("–", "-"), "canceled"
	case s.untaken && s.Table.Unfinished() == 0:
		msg = "all jobs have ended, but not all results were read"
	case code == exitLeft || code == exitUsage && s.Table.Counts[jobs.Succeeded] == len(s.Table.Jobs):
		msg = "stopped with jobs left"
		if s.Table.Unfinished() == 0 && s.Input.Cut() {
			msg = cameHeadline(s.Table)
		}
		if s.Finish.Why != "" {
			msg += " (" + s.Finish.Why + ")"
		}
	case s.Refused > 0 && s.Table.Counts[jobs.Succeeded] == len(s.Table.Jobs):
		msg = "all accepted jobs succeeded"
	default:
		color, mark, msg = red, s.app.con.Glyph("✗", "x"), "some jobs did not succeed"
	}
	return s.app.con.Paint(color, mark+" "+text.Line(s.Run.Name())+": "+text.Line(msg))
}

// cameHeadline is the headline of a run whose input was cut off and whose jobs are
// all over.
func cameHeadline(t *jobs.Table) string {
	switch {
	case len(t.Jobs) == 0:
		return "no jobs were read"
	case t.Counts[jobs.Succeeded] == len(t.Jobs):
		return "all jobs that were read succeeded"
	}
	return "all jobs that were read have ended"
}

// advice returns what to type next.
func (s *summary) advice() []string {
	var lines []string
	if s.Input.Cut() && s.InputErr == nil && s.Finish.How != sched.Fenced { // a fault of the input was just said
		lines = append(lines, runview.InputText(s.Input, s.Table))
	}
	ref := refTo(s.Run)
	next := func(command, text string) { lines = append(lines, s.app.nextLine(command, text)) }
	running, queued := s.Table.Counts[jobs.Running], s.Table.Counts[jobs.Queued]
	switch {
	case s.Copied:
		next("resume "+ref, "continues the run from this directory; any other dispatcher of the run is then fenced off")
		return lines
	case s.Finish.How == sched.Fenced:
		next("status "+ref, "shows the status of the run")
		return lines
	case s.Finish.How == sched.NoHosts:
		check := "hosts check"
		if s.flags.hosts != "" {
			check += " --hosts " + text.ShellWord(text.Line(s.flags.hosts))
		}
		next(check, "shows what is wrong with them")
	}
	switch {
	case running > 0:
		lines = append(lines, jobs.Plural(running, "job")+" may still run, without a dispatcher:")
		next("resume "+ref, "adopts the running jobs and continues the run")
		next("cancel "+ref, "ends what runs")
	case queued > 0:
		next("resume "+ref, "continues the run")
	case s.untaken && s.flags.json:
		next("resume --json "+ref, "prints the results that were not read")
	}
	if s.Table.Counts[jobs.Failed]+s.Table.Counts[jobs.TimedOut] > 0 {
		next("results --failed "+ref, "lists the jobs that failed")
		next("requeue "+ref+" --failed", "runs them again")
	}
	if s.Table.Counts[jobs.TimedOut] > 0 && s.Table.Counts[jobs.Skipped] > 0 { // most are skipped because easier ones timed out
		next("requeue "+ref+" --where 'state=timed_out or state=skipped' --timeout TIME", "gives them more time")
	}
	return lines
}

// nextLine suggests a command.
func (a *app) nextLine(command, text string) string {
	return "  " + a.con.Paint(bold, "dcs-tui "+command) + "  " + text
}

// logLines names the files with the outputs of jobs and, if there is one, the log of the dispatcher.
func logLines(run *rundir.Run, hasDispatcherLog bool) []string {
	lines := []string{"logs: " + text.ShellWord(dirOf(run, rundir.AttemptsDir)) + "/*/JOB.ATTEMPT.out and .err"}
	if hasDispatcherLog {
		lines = append(lines, "      "+dirOf(run, dispatcherLogFile)+" has the messages of the dispatcher")
	}
	return lines
}

// deletedAdvice returns lines that say what can be done about a run whose directory was
// deleted. No command can open that run.
func (s *summary) deletedAdvice() []string {
	lines := []string{text.Line(s.Run.Dir) + " was deleted or moved, and with it the journal and the outputs: no command can resume or cancel this run",
		"  if it was moved, put it back; then dcs-tui resume " + refTo(s.Run) + " adopts the running jobs and continues the run"}
	var hosts []string
	n := 0
	for host, c := range runview.CountHosts(s.Table) {
		if n += c.Running; c.Running > 0 {
			hosts = append(hosts, fmt.Sprintf("%s (%d)", text.Line(host), c.Running))
		}
	}
	if n == 0 {
		return lines
	}
	slices.Sort(hosts)
	// Each process of the run has the run's random name in its environment.
	return append(lines, jobs.Plural(n, "job")+" may still run, on "+someNames(hosts, 4)+"; nobody collects the results. On such a host this ends all jobs of the run:",
		"  kill $(grep -lsz '^DCS_COOKIE="+s.Run.UID()+"/' /proc/[0-9]*/environ | cut -d/ -f3)")
}

// noHostsText explains why a run ends without a host: the first hosts, each with the first
// clause of its reason. The whole messages were printed before.
func noHostsText(hs []sched.HostView) string {
	const maxNamed, maxReason, minClause = 3, 60, 8
	if len(hs) == 0 {
		return "there is no host"
	}
	var texts []runview.HostText
	for _, h := range hs {
		if h.Reason != "" {
			texts = append(texts, runview.HostText{Host: h.Name, Text: h.Reason})
		}
	}
	var parts []string
	for _, g := range runview.GroupHosts(texts) {
		reason := text.Line(g.Text)
		for _, sep := range []string{" (", "; ", ": "} {
			if first, _, found := strings.Cut(reason, sep); found && len(first) >= minClause {
				reason = first
			}
		}
		parts = append(parts, text.Line(g.Name())+" ("+jobs.Clean(reason, maxReason)+")")
	}
	if len(parts) == 0 {
		return "no host could be used"
	}
	return "no host could be used: " + someNames(parts, maxNamed) + "; see above"
}

// efficiency describes how well the slots of this session were used.
func (s *summary) efficiency() string {
	const minSession = 5 * time.Second // what is shorter was spent connecting
	busy, lasted := s.BusyTime(), time.Since(s.Began)
	if lasted < minSession || busy == 0 || s.SlotTime <= 0 || s.MostSlots == 0 {
		return ""
	}
	return fmt.Sprintf("efficiency %.0f%%: %s of run time on %s in %s", min(100, 100*busy.Seconds()/s.SlotTime.Seconds()),
		results.HumanDuration(busy), jobs.Plural(s.MostSlots, "slot"), results.HumanDuration(lasted))
}

// endTimeout is how long a dispatcher whose jobs are all over may take to end: it asks
// every host to end what jobs left behind.
const endTimeout = 5 * time.Second

// farewell reports how a run stands whose screen was left, where its logs are, and what can
// be typed next. It sets the exit code.
func (a *app) farewell(f *runScreen, last *runview.Picture) error {
	f.Close()
	l, err := a.read(f.run)
	if err != nil {
		return err
	}
	over := l.Table.Unfinished() == 0 && l.Requests == 0 && l.Input.State != rundir.InputOpen ||
		last != nil && (last.Status == runview.StatusFinished || last.Status == runview.StatusStopped) // its dispatcher may be ending
	for end := time.Now().Add(endTimeout); over && l.Dispatched() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		l.Watch(false)
	}
	p := f.process.Load()
	another := p != nil && l.Owner != nil && !p.Is(l.Owner) // dispatches the run, or did last
	if !over && l.Dispatched() {
		a.goesOn(f, l, last, another)
		return nil
	}
	finish := sched.Finish{How: sched.AllDone, Why: runview.LeftBehind(l.Table)}
	state := run.StateOf(finish.How, l.Table.Judged(), f.canceled.Load() || l.Table.CanceledAll, l.Input.Cut())
	a.code = exitCode(state)
	if p != nil && !another && !l.Dispatched() {
		select {
		case <-p.Ended:
			a.code, _ = codeOf(p) // it knows more than its files show
		case <-time.After(endTimeout):
		}
	}
	if a.code == exitNoHosts {
		finish = sched.Finish{How: sched.NoHosts, Why: "for as long as --give-up says"}
	}
	s := &summary{app: a, words: l.Words, flags: new(runFlags), logged: p != nil,
		Outcome: &run.Outcome{State: state, Run: f.run, Table: l.Table, Input: l.Input, Finish: finish}}
	if another && !f.canceled.Load() { // a cancel from here takes the run over
		s.notes = []string{"  dispatched last by " + text.Line(l.Owner.String()) + ", after the one that began here"}
	}
	a.con.Line(s.lines(a.code)...)
	return nil
}

// goesOn reports how to come back to a run that somebody dispatches. another: this is not
// the dispatcher that was started here.
func (a *app) goesOn(f *runScreen, l *look, last *runview.Picture, another bool) {
	ref, what := refTo(f.run), a.con.Paint(bold, text.Line(f.run.Name()))
	a.code = exitLeft
	switch {
	case another:
		what += " was taken over by another dispatcher and continues"
	case f.canceled.Load():
		a.code = exitCanceled
		what += " is being canceled in the background"
	case last != nil && last.Draining != "":
		what += ": running jobs finish in the background, and no more are started"
	default:
		what += " continues in the background"
	}
	lines := []string{"", what + ": " + runview.Counts(l.Table, true), "  dispatched by " + text.Line(l.Owner.String()) + ", until it is done",
		a.nextLine("attach "+ref, "shows it again"), a.nextLine("status "+ref, "shows its status")}
	if !f.canceled.Load() {
		lines = append(lines, a.nextLine("cancel "+ref, "ends it"))
	}
	a.con.Line(append(lines, logLines(f.run, true)...)...)
}
