// Package cmdlink is the Link over any command whose standard streams reach a
// process on the host: `ssh ws01`, `docker exec -i box`, `kubectl exec -i pod --`,
// `srun --jobid=7`. The command gets three more arguments: /bin/sh, -c, and our
// fixed text.
//
// A command such as ssh joins its arguments with spaces, and a shell at the far end
// splits them again. For such a command the text is quoted (hosts.Host.Shells).
//
// The command runs without a terminal and without an askpass program, so it cannot
// ask questions. The package does not know what the command does. The only sign of
// life is the stream itself, and ending a stream ends the command on this side only.
package cmdlink

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/hosts/locallink"
)

// Opener opens links through the command that the inventory gives a host.
type Opener struct{}

// Open checks that the command exists here and returns a link; the command
// itself runs first with Start.
func (Opener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	fail := func(c hosts.Class, err error, advice string) (hosts.Link, error) {
		return nil, &hosts.Error{Host: h.Name, Class: c, Err: err, Advice: advice}
	}
	if err := ctx.Err(); err != nil {
		return fail(hosts.Unreachable, err, "")
	}
	if len(h.Command) == 0 {
		return fail(hosts.Misconfigured, errors.New("no command to reach it with"), `set link = "COMMAND …" in the inventory`)
	}
	if _, err := exec.LookPath(h.Command[0]); err != nil {
		return fail(hosts.Misconfigured, err, "is "+h.Command[0]+" installed here and in PATH?")
	}
	inner := locallink.New(h.Name, withoutAskpass(os.Environ()), h.Command...)
	if h.Shells == 0 {
		return inner, nil
	}
	return &link{Link: inner, host: h}, nil
}

// withoutAskpass returns env without the variables that make ssh start an askpass
// program. With 100 hosts it would open 100 windows, and again at each attempt. Older
// versions of ssh know only the first of the two variables.
func withoutAskpass(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "SSH_ASKPASS=") || strings.HasPrefix(v, "SSH_ASKPASS_REQUIRE=")
	})
	return append(env, "SSH_ASKPASS_REQUIRE=never")
}

// link is the Link of a command that joins its arguments.
type link struct {
	hosts.Link
	host *hosts.Host
}

// Start runs command, quoted once for each shell that will split it.
func (l *link) Start(ctx context.Context, command string) (hosts.Stream, error) {
	for range l.host.Shells {
		command = hosts.ShellQuote(command)
	}
	s, err := l.Link.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	return &stream{Stream: s, host: l.host, words: newWords(s.Stderr())}, nil
}
