//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/internal/account"
)

// fakeLogind replaces the programs that ask logind. kill, exclude, and only are the properties, linger
// is that of the user.
func fakeLogind(t *testing.T, kill, exclude, only, linger, run string) {
	t.Helper()
	replacePrograms(t, map[string]string{
		"busctl": `case "$5" in ` +
			`KillUserProcesses) echo '` + kill + `';; ` +
			`KillExcludeUsers) echo '` + exclude + `';; ` +
			`KillOnlyUsers) echo '` + only + `';; esac`,
		"loginctl":    `[ "$*" = "show-user --property=Linger --value 1000" ] && echo ` + linger,
		"systemd-run": run,
	})
}

// TestSessionThatEndsItsProcesses checks when jobs would end with the connection: in a session of logind
// whose settings end the processes of this user.
func TestSessionThatEndsItsProcesses(t *testing.T) {
	const session = "1:name=systemd:/user.slice/user-1000.slice/session-7.scope\n" +
		"0::/user.slice/user-1000.slice/session-7.scope\n"
	for name, c := range map[string]struct {
		cgroup, kill, exclude, only string
		want                        bool
	}{
		"ends them":            {session, "b true", `as 1 "root"`, "as 0", true},
		"leaves them":          {session, "b false", `as 1 "root"`, "as 0", false},
		"not this user":        {session, "b true", `as 2 "root" "ada"`, "as 0", false},
		"this user among some": {session, "b true", `as 0`, `as 2 "bob" "ada"`, true},
		"only others":          {session, "b true", `as 0`, `as 1 "bob"`, false},
		"outside of a session": {"0::/system.slice/sshd.service\n", "b true", "as 0", "as 0", false},
		"in the user's systemd": {
			"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n",
			"b true",
			"as 0",
			"as 0",
			false,
		},
		"without logind": {session, "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(root, "proc/self"), 0o700))
			write(t, filepath.Join(root, "proc/self/cgroup"), c.cgroup)
			fakeLogind(t, c.kill, c.exclude, c.only, "no", "exit 1")
			if got := (site{root: root}).endsProcesses("ada"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// TestScopeOfUser checks that a helper moves only if the user lingers and the user's systemd works.
func TestScopeOfUser(t *testing.T) {
	for name, c := range map[string]struct {
		linger, run string
		want        bool
	}{
		"lingers":             {"yes", `shift 5; exec "$@"`, true},
		"does not linger":     {"no", `shift 5; exec "$@"`, false},
		"without a bus":       {"yes", `echo "Failed to connect to bus" >&2; exit 1`, false},
		"without systemd-run": {"yes", `exit 127`, false},
	} {
		t.Run(name, func(t *testing.T) {
			fakeLogind(t, "b true", "as 0", "as 0", c.linger, c.run)
			argv := scopeOfUser(account.User{Name: "ada", UID: 1000})
			if got := argv != nil; got != c.want {
				t.Errorf("got %q, want a command: %t", argv, c.want)
			}
		})
	}
}
