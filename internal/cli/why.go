package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

func (a *app) whyCmd() *cobra.Command {
	var flags whyFlags
	cmd := &cobra.Command{
		Use:   "why [flags] [RUN] JOB",
		Short: "Explain why a job is not running, or what it is doing",
		Long: `Print why a job is not running, or what it is doing. The answer comes from the dispatcher of the run,
through ssh if that is on another machine. If the dispatcher cannot be asked, the answer comes from the run
directory. ` + runHelp,
		Example: `dcs-tui why sweep-20260314-1502 17`,
		Args:    requireJob,
		RunE:    func(_ *cobra.Command, args []string) error { return a.runWhy(args, &flags) },
	}
	cmd.Flags().BoolVar(&flags.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&flags.local, "local", false, "ask no other machine")
	_ = cmd.Flags().MarkHidden("local")
	return cmd
}

// requireJob requires a job, and allows a run before it.
func requireJob(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return text.Errorf("%s needs one job number", cmd.CommandPath()).WithAdvice("%s [RUN] JOB", cmd.CommandPath())
	}
	return nil
}

// openJob opens the run of the arguments, and returns the job. It accepts them in either order. The
// job may be given as an attempt, such as 17.2; otherwise N is 0.
func (a *app) openJob(args []string) (*rundir.Run, jobs.AttemptID, error) {
	parse := func(word string) jobs.AttemptID {
		if id, err := jobs.ParseAttemptID(word); err == nil {
			return id
		}
		n, _ := strconv.Atoi(word)
		return jobs.AttemptID{Job: jobs.ID(max(0, n))}
	}
	word, rest := args[len(args)-1], args[:len(args)-1]
	if len(args) == 2 && parse(word).Job == 0 && parse(args[0]).Job > 0 {
		word, rest = args[0], args[1:]
	}
	id := parse(word)
	if id.Job == 0 {
		return nil, id, notJobError(word, rest)
	}
	run, err := a.openRun(rest)
	return run, id, err
}

// notJobError reports that a word, after the arguments rest, is not a job number.
func notJobError(word string, rest []string) error {
	err := text.Errorf("%q is not a job number such as 3 or an attempt such as 3.1", text.Shorten(word))
	if _, found := rundir.Find(rundir.Base, word); found == nil && len(rest) == 0 {
		return err.WithAdvice("it is a run: give the number of a job, too")
	}
	ref := ""
	for _, arg := range rest {
		ref = " " + text.ShellWord(text.Line(arg))
	}
	return adviseByName(err, []string{word}, "dcs-tui results"+ref+" --all ", " lists the numbers of jobs")
}

// noJobError reports that a run of n jobs has no job with this number.
func noJobError(run *rundir.Run, id jobs.ID, n int) error {
	return text.Errorf("the run %s has no job %d; it has %s", run.Name(), id, text.Plural(n, "job"))
}

// queryTimeout bounds a query to a dispatcher.
const queryTimeout = 30 * time.Second

func (a *app) openView(run *rundir.Run, o runview.Options) (*runview.View, error) {
	v := runview.Open(run, o)
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	if err := v.Ready(ctx); err != nil {
		v.Close()
		return nil, err
	}
	v.Connect(ctx)
	return v, nil
}

// maxPublishDelay is the maximum time until readers can see a record of a live dispatcher.
const maxPublishDelay = 2 * time.Second

// jobSnapshot returns a snapshot with the details of a job. It waits up to maxPublishDelay for a job that may just
// have been added.
func jobSnapshot(src runview.Source, run *rundir.Run, id jobs.ID) (*runview.Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	for began := time.Now(); ; time.Sleep(maxPublishDelay / 20) {
		snap, err := src.Snapshot(ctx, runview.Query{Focus: id})
		switch {
		case err != nil:
			return nil, err
		case snap.Detail != nil:
			return snap, nil
		case time.Since(began) >= maxPublishDelay:
			return nil, noJobError(run, id, snap.Total)
		}
	}
}

// whyJSON is the output of why --json.
type whyJSON struct {
	runJSON
	Job     jobs.ID `json:"job"`
	Phase   string  `json:"phase"` // as in the list of the screen: run, queue, retry, waits, …
	Why     string  `json:"why"`
	Live    bool    `json:"live"` // the answer comes from the dispatcher
	Host    *string `json:"host"`
	Attempt int     `json:"attempt"` // number of the newest attempt; 0: none
}

// whyFlags holds the flags of why.
type whyFlags struct {
	json  bool
	local bool // ask no other machine; askWhyThere sets it
}

func (a *app) runWhy(args []string, flags *whyFlags) error {
	run, named, err := a.openJob(args)
	if err != nil {
		return err
	}
	id := named.Job
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return err
	}
	answer, whyNot := a.askWhy(run, owner, id, flags.local)
	o := a.viewOptions(run)
	o.Socket = nil // the dispatcher has been asked
	v, err := a.openView(run, o)
	if err != nil {
		return err
	}
	defer v.Close()
	snap, err := jobSnapshot(v, run, id)
	if err != nil {
		return err
	}
	d, isDispatched := snap.Detail, snap.End == ""
	if whyNot != nil && isDispatched { // it may have ended meanwhile
		a.warn("%s cannot be asked, so this is what the run directory shows: %v", text.Line(owner.String()), whyNot)
	}
	j := whyJSON{runJSON: runJSONOf(run), Job: id, Phase: d.Row.Phase.String(), Why: d.Why, Attempt: d.Row.Attempt}
	if d.Row.Host != "" {
		j.Host = &d.Row.Host
	}
	if answer != nil && isDispatched {
		j.Why, j.Live = answer.Why, answer.Live
	}
	if flags.json {
		return a.printJSON(j)
	}
	out := newConsole(a.stdout)
	out.Line(out.Paint(bold, "job "+strconv.Itoa(int(id)))+"  "+text.Shorten(text.Line(d.Row.Title)), text.Line(j.Why))
	if !isDispatched && !d.Row.Phase.Terminal() {
		out.Line("  dcs-tui resume " + refTo(run))
	}
	return nil
}

// askWhy asks the dispatcher why a job waits. It returns nil if no dispatcher can be asked. With
// local it asks no other machine.
func (a *app) askWhy(run *rundir.Run, owner *journal.Owner, id jobs.ID, local bool) (*whyJSON, error) {
	if owner.Liveness() == journal.Dead || owner.Socket == "" {
		return nil, nil
	}
	here := isOnThisMachine(owner)
	switch {
	case here && owner.IsStopped():
		return nil, errors.New(runview.StoppedText(owner))
	case here:
		ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
		defer cancel()
		client, err := dialSocket(ctx, run, owner)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		text, err := client.Why(ctx, id)
		if err != nil {
			return nil, err
		}
		return &whyJSON{Why: text, Live: true}, nil
	case local:
		return nil, nil
	}
	return a.askWhyThere(run, owner, id)
}

// isOnThisMachine reports whether a dispatcher that is not dead is on this machine, perhaps in
// another container.
func isOnThisMachine(owner *journal.Owner) bool {
	name, err := os.Hostname()
	return owner.Liveness() == journal.Alive || err == nil && name == owner.Host
}

// dialSocket connects to the socket of a dispatcher on this machine.
func dialSocket(ctx context.Context, run *rundir.Run, owner *journal.Owner) (*socket.Client, error) {
	return socket.Dial(ctx, owner.Socket, run.UID())
}

// remoteTimeout bounds running a command on another machine, including the time to type a
// passphrase for ssh.
const remoteTimeout = time.Minute

// askWhyThere runs dcs-tui why on the machine of the owner. The path may be another run directory
// there, so the answer must have the id of the run.
func (a *app) askWhyThere(run *rundir.Run, owner *journal.Owner, id jobs.ID) (*whyJSON, error) {
	if !hostNamePattern.MatchString(owner.Host) {
		return nil, fmt.Errorf("its owner file names the machine %q, which is not the name of a host",
			text.Shorten(text.Line(owner.Host)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	args := sshArgs(owner.Host, run.Dir, []string{"why", "--json", "--local", run.Dir, strconv.Itoa(int(id))}, false)
	options := []string{"-o", "ConnectTimeout=10"}
	if !a.isInteractive() {
		options = append(options, "-o", "BatchMode=yes") // do not ask for a passphrase
	}
	cmd := exec.CommandContext(ctx, "ssh", append(options, args[1:]...)...)
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch last := lastLine(said.String()); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ssh %s has not answered within %v", owner.Host, remoteTimeout)
	case err != nil && last != "":
		return nil, fmt.Errorf("ssh %s: %s", owner.Host, last)
	case err != nil:
		return nil, fmt.Errorf("ssh %s: %w", owner.Host, err)
	}
	answer := new(whyJSON)
	if err := json.Unmarshal(out.Bytes(), answer); err != nil || answer.V != 1 || answer.Job != id {
		return nil, fmt.Errorf("ssh %s: cannot parse the answer of dcs-tui why there; "+
			"use the program that dispatches the run", owner.Host)
	}
	if answer.UID != run.UID() {
		return nil, fmt.Errorf("%s is another run on %s", run.Dir, owner.Host)
	}
	return answer, nil
}

// hostNamePattern matches names of machines that are safe arguments of ssh.
var hostNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// lastLine returns the last line of a text for a message.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	return text.Shorten(text.Line(output[strings.LastIndexByte(output, '\n')+1:]))
}
