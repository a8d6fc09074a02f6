package grid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/regular"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// source is a file or a command that gives the values of a parameter, one per line.
type source struct {
	kind, text string // fromFile or fromCommand; the path or the command
	offset     int
}

// The kinds of sources, as they are written.
const (
	fromFile    = "file"
	fromCommand = "command"
)

// maxSource is the maximum size of a file or of the output of a command, in bytes.
const maxSource = 16 << 20

// cutSource parses `file: PATH` or `command: COMMAND`. A blank must follow the
// colon: a URL that begins with file:// is a value.
func cutSource(text string, from int) (source, bool) {
	for _, kind := range []string{fromFile, fromCommand} {
		rest, ok := strings.CutPrefix(text[from:], kind+":")
		if ok && (rest == "" || strings.IndexByte(blanks, rest[0]) >= 0) {
			trimmed := strings.TrimLeft(rest, blanks)
			return source{kind: kind, text: strings.TrimRight(trimmed, blanks), offset: len(text) - len(trimmed)}, true
		}
	}
	return source{}, false
}

// read returns the values: each line that is not blank, unchanged.
func (s source) read(ctx context.Context, c Config) (texts, error) {
	var b []byte
	var err error
	what := "the command"
	if s.kind == fromFile {
		what = s.text
		b, err = readFile(c.Dir, s.text)
	} else {
		b, err = c.run(ctx, c, s.text, nil)
	}
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("%s contains a NUL byte and is not text", what)
	}
	var list texts
	for l := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		l = strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")
		if strings.Trim(l, blanks) != "" {
			list = append(list, l)
		}
	}
	if len(list) == 0 && s.kind == fromFile {
		return nil, fmt.Errorf("%s has no value: write one per line", what)
	}
	if len(list) == 0 {
		return nil, errors.New("the command printed no value: it should print one per line")
	}
	return list, nil
}

func readFile(dir, path string) ([]byte, error) {
	if path[0] == '"' || path[0] == '\'' {
		text, rest, ok := jobs.CutQuoted(path)
		if !ok || rest != "" {
			return nil, fmt.Errorf("%s is not one path: put the whole path in quotes, or no part of it", path)
		}
		path = text
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	b, err := regular.Read(os.OpenFile, path, maxSource)
	switch {
	case errors.Is(err, regular.ErrKind):
		return nil, fmt.Errorf("%s is not a file; command: cat %s reads it if it can be read", path, path)
	case errors.Is(err, regular.ErrSize):
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxSource>>20)
	case err != nil:
		return nil, fmt.Errorf("the values cannot be read: %w", err)
	}
	return b, nil
}

// runCommand returns the output of a command whose standard input is in. The command and its
// children are killed if it takes too long, prints too much, or ctx ends.
func runCommand(ctx context.Context, c Config, text string, in io.Reader) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := shellCommand(limited, c.Dir, text)
	cmd.Stdin = in
	out := cappedBuffer{limit: maxSource, full: cancel}
	errs := tailBuffer{}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.Process != nil {
		_ = cmd.Cancel() // kills processes that it left behind
	}
	switch {
	case err == nil:
		return out.b, nil
	case out.over:
		return nil, fmt.Errorf("the command prints more than %d MiB", maxSource>>20)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the command was stopped: %w", context.Cause(ctx))
	case limited.Err() != nil && in != nil:
		return nil, fmt.Errorf("the command did not end within %v and was stopped%s", c.Timeout, errs.lastLines())
	case limited.Err() != nil:
		return nil, fmt.Errorf("the command did not end within %v and was stopped%s; "+
			"write its output to a file and take file: PATH", c.Timeout, errs.lastLines())
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("the command has ended, but a process that it left kept its output open and was killed")
	}
	return nil, fmt.Errorf("the command failed (%w)%s", err, errs.lastLines())
}

// shellCommand returns a command that /bin/sh runs in a process group of its own. The whole group
// is killed when ctx ends.
func shellCommand(ctx context.Context, dir, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// cappedBuffer is a buffer for up to limit bytes. It calls full if more are written.
type cappedBuffer struct {
	b     []byte
	limit int
	over  bool
	full  func()
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	if len(c.b)+len(p) > c.limit {
		c.over = true
		c.full()
		return 0, io.ErrShortWrite
	}
	c.b = append(c.b, p...)
	return len(p), nil
}

// tailBuffer keeps the last maxTail bytes that are written.
type tailBuffer struct{ b []byte }

const maxTail = 4 << 10

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// lastLines returns the last lines of the output, for an error.
func (t *tailBuffer) lastLines() string {
	lines := strings.FieldsFunc(string(t.b), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return "; it printed nothing on stderr"
	}
	return ": " + text.Clean(strings.Join(lines[max(0, len(lines)-3):], "; "), 300)
}
