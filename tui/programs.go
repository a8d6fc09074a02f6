package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// maxCopied bounds a text for the clipboard in bytes, because many terminals drop larger ones.
const maxCopied = 48 << 10

// copyText puts a text into the clipboard of the terminal (OSC 52), and shows its beginning.
func (m *model) copyText(what, msg string) tea.Cmd {
	if len(msg) > maxCopied {
		what = "the beginning of " + what
	}
	lines := text.Each(strings.Split(strings.TrimRight(prefix(msg, maxCopied), "\n"), "\n"),
		func(line string) string { return text.Clean(line, 0) })
	m.showMessage("copied " + what + ": " + m.cutCell(lines[0], 200))
	return tea.SetClipboard(strings.Join(lines, "\n"))
}

// copyCurrent copies the line under the cursor, the command that prints the output, or that of the job.
func (m *model) copyCurrent() tea.Cmd {
	p := m.focus()
	if what, text := p.textToCopy(m); text != "" {
		return m.copyText(what, text)
	}
	r, ok := m.currentJob()
	if !ok || !m.focusHasJobs() {
		m.showError("there is nothing to copy under the cursor")
		return nil
	}
	return m.withDetail(r.ID, func(m *model, detail *runview.Detail) tea.Cmd {
		if p, ok := p.(*outputPane); ok && p.source.id.Job == r.ID && p.source.id.N > 0 {
			return m.copyText("the command that prints the "+streamName(p.file)+" of "+jobName(r.ID),
				m.logsCommand(p.source.id, p.source.file))
		}
		return m.copyText("the command of "+jobName(r.ID), detail.Command)
	})
}

// logsCommand returns the command that prints an output of an attempt. Unlike the path of its file, it
// stays valid when the file goes into a pack.
func (m *model) logsCommand(id jobs.AttemptID, f jobs.File) string {
	return "dcs-tui logs " + text.If(f == jobs.FileErr, "--err ") + text.ShellWord(m.clean(m.snap.Run.Dir)) + " " +
		id.String()
}

// outsideProgram is a program that has the terminal until it ends.
type outsideProgram struct {
	*exec.Cmd
	hello string // printed before the program starts
}

func (l *outsideProgram) Run() error {
	if l.hello != "" {
		fmt.Fprintln(l.Stdout, l.hello)
	}
	return l.Cmd.Run()
}

// SetStdin does nothing: the program uses the terminal itself, and not the streams of Bubble Tea.
func (*outsideProgram) SetStdin(io.Reader)  {}
func (*outsideProgram) SetStdout(io.Writer) {}
func (*outsideProgram) SetStderr(io.Writer) {}

// outsideEnded is sent when the terminal is back.
type outsideEnded struct {
	what string
	temp string // file to remove
	err  error
}

// runOutside gives the terminal to a program. Meanwhile, signals from keys do not end the screen.
func (m *model) runOutside(c *exec.Cmd, what, hello, temp string) tea.Cmd {
	c.Stdin, c.Stdout, c.Stderr = m.opt.In, m.opt.Out, m.opt.Out
	l := &outsideProgram{c, hello}
	m.outside.Store(l)
	m.opt.Suspended(true)
	return tea.Exec(l, func(err error) tea.Msg { return outsideEnded{what, temp, err} })
}

func (r outsideEnded) apply(m *model) tea.Cmd {
	m.outside.Store(nil)
	m.opt.Suspended(false)
	os.Remove(r.temp)
	if r.err != nil {
		m.showMessage(r.what + " has ended: " + r.err.Error())
	}
	return nil
}

func (m *model) openShell(host string) tea.Cmd {
	if m.opt.Shell == nil || host == "" {
		m.showError("there is no host to open a shell on")
		return nil
	}
	c, err := m.opt.Shell(host)
	if err != nil {
		m.showError("no shell on " + host + ": " + err.Error())
		return nil
	}
	return m.runOutside(c, "the shell on "+m.clean(host),
		"A shell on "+m.clean(host)+"; exit goes back to the screen.", "")
}

// openCurrentShell opens a shell on the host of the job under the cursor.
func (m *model) openCurrentShell() tea.Cmd {
	r, _ := m.currentJob()
	return m.openShell(r.Host)
}

func (m *model) commandShell(arg string) (tea.Cmd, error) {
	if arg == "" {
		if p, ok := m.focus().(*hostsPane); ok {
			return p.unlessSlipped(func(m *model, h *live.Host) tea.Cmd { return m.openShell(h.Name) })(m), nil
		}
		return m.openCurrentShell(), nil
	}
	if err := m.checkHost(arg); err != nil {
		return nil, err
	}
	return m.openShell(arg), nil
}

// maxPaged bounds the copy of an output that only its host has, in bytes. The copy has the end of
// the output.
const maxPaged = 64 << 20

// openOutputInPager opens an output in the pager: that of the focused pane or, without one there,
// that of the job under the cursor.
func (m *model) openOutputInPager() tea.Cmd {
	r, ok := m.currentJob()
	want := outputFile{jobs.AttemptID{Job: r.ID, N: r.Attempt}, jobs.FileOut}
	p, shown := m.focus().(*outputPane)
	if shown {
		want = p.source
	}
	if !ok || !m.focusHasJobs() || want.id.N == 0 {
		m.showError("there is no output to open: no job under the cursor has started")
		return nil
	}
	src, dir, path, temp := m.src, m.snap.Run.Dir, "", ""
	m.showMessage("reading the output of " + jobName(r.ID) + "; esc gives up")
	return m.awaitAnswer(&waitModal{onCancel: func() { os.Remove(temp) }}, 3*readTimeout,
		func(ctx context.Context) reply {
			if !shown && r.Cause != "" { // a failed job that printed only on stderr
				if piece, err := src.Read(ctx, runview.Read{Attempt: want.id, File: want.file, Limit: 1}); err == nil &&
					piece.Size == 0 {
					want.file = jobs.FileErr
				}
			}
			var err error
			path = jobs.AttemptFile(dir, want.id, want.file)
			if f, missing := os.Lstat(path); missing != nil || !f.Mode().IsRegular() || !filepath.IsAbs(path) {
				temp, err = downloadOutput(ctx, src, want)
				path = temp
			}
			return func(m *model) tea.Cmd {
				if err != nil {
					m.showError("the output cannot be read: " + err.Error())
					return nil
				}
				m.message = message{}
				return m.openPager(path, temp)
			}
		})
}

// downloadOutput copies an output to a private temporary file.
func downloadOutput(ctx context.Context, src runview.Source, s outputFile) (path string, err error) {
	f, err := os.CreateTemp("", "dcs-output-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	for at := int64(-maxPaged); ; {
		piece, err := src.Read(ctx, runview.Read{Attempt: s.id, File: s.file, Offset: at, Limit: searchPieceSize})
		if err == nil {
			_, err = f.Write(piece.Data)
		}
		if err != nil {
			return "", err
		}
		at = piece.Offset + int64(len(piece.Data))
		if len(piece.Data) == 0 || at >= piece.Size {
			return f.Name(), nil
		}
	}
}

// openPager opens a file in the pager. temp is a file to remove afterwards; "": none.
func (m *model) openPager(path, temp string) tea.Cmd {
	pager := os.Getenv("PAGER")
	if strings.TrimSpace(pager) == "" {
		pager = "less -R"
	}
	// The path is an argument, so it needs no quoting. ctrl+c ends only the pager: the trap keeps
	// the shell waiting.
	c := exec.Command("/bin/sh", "-c", "trap : INT QUIT; "+pager+` "$1"`, "sh", path)
	c.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		c.Env = append(c.Env, "LESS=-R")
	}
	return m.runOutside(c, "the pager", "", temp)
}

// outsideKeys returns the keys that copy texts and open the pager.
func (m *model) outsideKeys() []binding {
	return append(
		withGroup("Views", key("copy", "", "copy to the clipboard: a job's command, in its output the command "+
			"that prints it, elsewhere the line", (*model).copyCurrent).thatActs()),
		withGroup("Jobs", key("pager", "", "its output in $PAGER (less -R)",
			(*model).openOutputInPager).onlyIf((*model).focusHasJobs).thatActs())...)
}

// shellKey returns the key that opens a shell on the host of a pane's job.
func shellKey() binding {
	return key("shell", "shell", "a shell on its host", (*model).openCurrentShell).
		onlyIf(func(m *model) bool { r, ok := m.currentJob(); return ok && r.Host != "" && m.opt.Shell != nil }).
		orSay("there is no host here to open a shell on").thatActs()
}
