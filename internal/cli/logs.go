package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// logsFlags holds the flags of logs.
type logsFlags struct {
	err     bool
	follow  bool
	json    bool
	attempt int
}

func (a *app) logsCmd() *cobra.Command {
	var flags logsFlags
	cmd := &cobra.Command{
		Use:   "logs [flags] [RUN] JOB",
		Short: "Print the output of a job",
		Long: `Print the output of a job, or of one of its attempts, such as 17.2. This works even while the job runs,
and even if only its host has the output. On a terminal, control characters are made visible; a file or pipe
gets the output unchanged. ` + runHelp,
		Example: `dcs-tui logs 17.2
dcs-tui logs --err --follow sweep-20260314-1502 17`,
		Args: requireJob,
		RunE: func(_ *cobra.Command, args []string) error { return a.runLogs(args, &flags) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&flags.err, "err", false, "print standard error instead of standard output")
	fs.BoolVarP(&flags.follow, "follow", "f", false,
		"follow the output of the job and of its later attempts until the job has finished")
	fs.Var(newFlag(&flags.attempt, "N", parseCount), "attempt", "print attempt N instead of the newest")
	fs.BoolVar(&flags.json, "json", false, "print one JSON object per line of output")
	return cmd
}

// logInterval is the time between two polls of --follow.
const logInterval = 300 * time.Millisecond

func (a *app) runLogs(args []string, flags *logsFlags) error {
	run, named, err := a.openJob(args)
	if err != nil {
		return err
	}
	id := named.Job
	flags.attempt = cmp.Or(flags.attempt, named.N)
	src, done, err := a.openOutputs(run)
	if err != nil {
		return err
	}
	defer done()
	w := &logWriter{out: a.stdout, json: flags.json, tty: isTerminal(a.stdout),
		line: logLine{runJSON: runJSONOf(run), Job: id, Stream: "stdout"}}
	file := jobs.FileOut
	if flags.err {
		file, w.line.Stream = jobs.FileErr, "stderr"
	}
	reported := ""
	for last := 0; ; {
		snap, err := jobSnapshot(src, run, id)
		if err != nil {
			return err
		}
		d := snap.Detail
		at, err := flags.chooseAttempt(d)
		if err != nil {
			return err
		}
		if at == nil || int(at.ID.N) == last {
			switch {
			case last != 0 && (!flags.follow || flags.attempt > 0 || d.Row.Phase.Terminal()):
				return nil
			case last == 0 && (!flags.follow || d.Row.Phase.Terminal()):
				return text.Errorf("job %d has no output: none of its attempts has started", id).WithAdvice("%s",
					text.Line(d.Why))
			case last == 0 && d.Why != reported:
				reported = d.Why
				a.con.Line("no output yet: " + text.Line(reported))
			}
			time.Sleep(logInterval)
			continue
		}
		if last != 0 && !flags.json {
			a.con.Line("--- " + at.ID.String() + " on " + text.Line(at.Host))
		}
		last = int(at.ID.N)
		if err := a.copyLog(src, run, at, file, flags.follow, w); err != nil {
			return err
		}
	}
}

// chooseAttempt returns the attempt to print. It returns nil if there is none yet.
func (f *logsFlags) chooseAttempt(d *runview.Detail) (*runview.Attempt, error) {
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		if at := &d.Attempts[i]; f.attempt == 0 || int(at.ID.N) == f.attempt {
			return at, nil
		}
	}
	if f.attempt > 0 && (!f.follow || d.Row.Phase.Terminal()) {
		return nil, text.Errorf("job %d has no attempt %d; it has %s", d.Row.ID, f.attempt,
			text.Plural(len(d.Attempts), "attempt"))
	}
	return nil, nil
}

// logsCommand returns the command that prints an output of an attempt. Unlike the path of its file, it
// stays valid when the file goes into a pack, and for what only a host has.
func logsCommand(run *rundir.Run, id jobs.AttemptID, f jobs.File) string {
	return "dcs-tui logs " + text.If(f == jobs.FileErr, "--err ") + refTo(run) + " " + id.String()
}

// copyLog copies the output of an attempt. With follow, it copies until the attempt has ended.
func (a *app) copyLog(src runview.Source, run *rundir.Run, at *runview.Attempt, file jobs.File, follow bool,
	w *logWriter) error {
	w.line.Attempt, w.line.Offset = at.ID.String(), 0
	for offset := int64(0); ; {
		ctx, cancel := context.WithTimeout(context.Background(), outputTimeout)
		piece, err := src.Read(ctx, runview.Read{Attempt: at.ID, File: file, Offset: offset, Limit: hosts.MaxChunk})
		cancel()
		if err != nil {
			return text.Errorf("cannot read the output of %s: %w", at.ID, err)
		}
		if piece.Size < offset {
			a.con.Line(fmt.Sprintf("%s: the output has shrunk from %d to %d bytes, because the job truncated it; "+
				"a job that writes to >> /dev/stdout or >> /dev/stderr keeps it", at.ID, offset, piece.Size))
			offset = 0
			w.restart()
			continue
		}
		offset += int64(len(piece.Data))
		done := offset >= piece.Size && (piece.Over || !follow)
		if err := w.write(piece.Data, done); err != nil {
			return err
		}
		switch {
		case done && offset == 0 && file == jobs.FileOut && at.Last != "" && !w.json && !w.quiet:
			a.con.Line(at.ID.String() + " has printed nothing on standard output; " +
				"--err shows its standard error, which ends with: " + text.Shorten(text.Line(at.Last)))
			return nil
		case done && offset == 0 && at.ID.N > 1 && !w.json && !w.quiet:
			before := jobs.AttemptID{Job: at.ID.Job, N: at.ID.N - 1}
			a.con.Line(at.ID.String() + " has printed nothing there; the attempt before is " + before.String())
			return nil
		case done:
			return nil
		case len(piece.Data) > 0:
			continue
		case offset >= piece.Size && follow && !piece.Over && at.Ended.IsZero():
			time.Sleep(logInterval)
			if snap, err := jobSnapshot(src, run, at.ID.Job); err == nil {
				attempts := snap.Detail.Attempts
				i := slices.IndexFunc(attempts, func(now runview.Attempt) bool { return now.ID == at.ID })
				if i >= 0 {
					at = &attempts[i]
				}
			}
		case offset >= piece.Size:
			return w.write(nil, true)
		default:
			return text.Errorf("cannot read the output of %s: the file was truncated", at.ID)
		}
	}
}

// logLine is the output of logs --json for a line.
type logLine struct {
	runJSON
	Job     jobs.ID `json:"job"`
	Attempt string  `json:"attempt"`
	Stream  string  `json:"stream"` // stdout or stderr
	Offset  int64   `json:"offset"` // of the line in the file, in bytes
	Text    string  `json:"text"`   // without the newline; invalid UTF-8 is replaced
}

// logWriter writes the output of a job in the form that the flags ask for.
type logWriter struct {
	out       io.Writer
	json, tty bool
	quiet     bool // do not report that the output is empty
	clean     lineCleaner
	line      logLine
	rest      []byte
}

// restart makes the writer continue at the start of an output that has shrunk.
func (w *logWriter) restart() { w.clean, w.rest, w.line.Offset = lineCleaner{}, nil, 0 }

func (w *logWriter) write(piece []byte, last bool) error {
	if !w.json {
		if w.tty {
			piece = w.clean.next(piece, last)
		}
		_, err := w.out.Write(piece)
		return err
	}
	w.rest = append(w.rest, piece...)
	for len(w.rest) > 0 {
		n := bytes.IndexByte(w.rest, '\n') + 1
		if n == 0 {
			if !last && len(w.rest) < maxHeld {
				return nil
			}
			n = len(w.rest)
		}
		w.line.Text = strings.TrimSuffix(string(w.rest[:n]), "\n")
		if err := writeJSON(w.out, w.tty, &w.line); err != nil {
			return err
		}
		w.line.Offset += int64(n)
		w.rest = w.rest[n:]
	}
	return nil
}
