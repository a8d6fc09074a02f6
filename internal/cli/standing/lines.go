package standing

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// Lines is what `status` says of it.
func (l *Look) Lines(c *console.Console) []string {
	lines := []string{
		c.Paint(console.Bold, console.CleanLine(l.Run.Name())) + "  " + console.CleanLine(Dir(l.Run)),
		"made        " + l.Run.Asked.Created.Local().Format("2006-01-02 15:04"),
	}
	switch {
	case l.Alive():
		lines = append(lines, "dispatched  by "+console.CleanLine(l.Owner.String()))
		if l.Owner.Problem != "" {
			lines = append(lines, c.Paint(console.Yellow, "trouble     ")+console.CleanLine(l.Owner.Problem))
		}
		if l.Owner.Stopped() {
			lines = append(lines, c.Paint(console.Yellow, "trouble     ")+fmt.Sprintf("it is stopped (Ctrl-Z, SIGSTOP): kill -CONT %d lets it go on", l.Owner.PID))
		}
	case l.Table.Unfinished() > 0:
		lines = append(lines, "dispatched  by nobody")
	}
	if l.Table.Paused && l.Table.Unfinished() > 0 {
		lines = append(lines, c.Paint(console.Yellow, "paused      ")+"by a person: nothing is launched until p on the screen (dcs-tui attach) continues it")
	}
	lines = append(lines, Summary(c, l.Table, l.Alive())...)
	if l.Alive() {
		lines = append(lines, l.hostLines()...)
	} else {
		lines = append(lines, HostTrouble(l.Table, l.Words)...)
		if text := runview.LeftBehind(l.Table); text != "" {
			lines = append(lines, text)
		}
	}
	lines = append(lines, openLines(l.Table, l.Alive())...)
	switch {
	case l.Asked == 0:
	case l.Alive():
		lines = append(lines, jobs.Plural(l.Asked, "request")+" not carried out yet")
	default:
		lines = append(lines, jobs.Plural(l.Asked, "request")+" for the next resume")
	}
	switch {
	case !l.Input.Cut():
	case l.Alive() && l.Input.State == rundir.InputOpen && l.Owner.Epoch <= 1: // later dispatchers read none
		lines = append(lines, "its input is still being read: more jobs may come")
	default:
		lines = append(lines, runview.InputText(l.Input, l.Table))
	}
	if (l.Table.Unfinished() > 0 || l.Asked > 0) && !l.Alive() {
		lines = append(lines, "  dcs-tui resume "+console.ShellWord(console.CleanLine(Ref(l.Run)))+"  carries it on")
	}
	return lines
}

// Summary is what results says of a table, for this console.
func Summary(c *console.Console, t *jobs.Table, dispatched bool) []string {
	var b strings.Builder
	_ = results.Summarize(t).WriteText(&b, c.Width()) // a strings.Builder takes everything
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	// The summary counts what a host holds as running; people ask what runs.
	running := t.Counts[jobs.Running]
	lines[0] = strings.Replace(lines[0], " "+runview.RunningText(running, 0, true), " "+runview.RunningText(running, runview.HandedOver(t), dispatched), 1)
	lines = append(lines, queueLines(t, dispatched)...)
	if text := deadlinesText(t, time.Now()); text != "" {
		lines = append(lines, text)
	}
	return lines
}
