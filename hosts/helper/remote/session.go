//go:build linux

package remote

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/account"
	"dcs-tui/internal/text"
)

// With KillUserProcesses=yes in logind.conf(5), systemd ends all processes of a login session when the
// connection ends, supervisors and jobs included. If the user may linger, the helper moves to a scope
// of the user's own systemd first, where they stay.

// movedEnv marks a helper that has moved.
const movedEnv = "DCS_HELPER_MOVED"

// endsSessionsWarning is the warning for a host on which leaveSession reports that jobs end.
const endsSessionsWarning = "this host ends the processes of users who log out (KillUserProcesses in logind.conf), " +
	"so running jobs end when the connection does: `loginctl enable-linger` there prevents it"

// leaveSession restarts this helper in a scope of the user's systemd if jobs would otherwise end with
// the connection. It reports whether they still do, because that was impossible.
func leaveSession(s site) (endsJobs bool) {
	wasMoved := os.Getenv(movedEnv) != ""
	os.Unsetenv(movedEnv) // not for the jobs
	user := account.Current()
	if wasMoved || !s.endsProcesses(user.Name) {
		return false
	}
	exe, err := os.Executable()
	if argv := scopeOfUser(user); argv != nil && err == nil {
		argv = append(append(argv, exe), os.Args[1:]...)
		syscall.Exec(argv[0], argv, append(os.Environ(), movedEnv+"=1")) // returns only on an error
	}
	return true
}

// endsProcesses reports whether the session of this process ends with all its processes.
func (s site) endsProcesses(user string) bool {
	groups, _ := os.ReadFile(s.root + "/proc/self/cgroup")
	inSession := false
	for line := range strings.Lines(string(groups)) {
		name := path.Base(strings.TrimSpace(line))
		inSession = inSession || strings.HasPrefix(name, "session-") && strings.HasSuffix(name, ".scope")
	}
	if !inSession {
		return false
	}
	if value := logindProperty("KillUserProcesses"); len(value) != 2 || value[1] != "true" { // b true
		return false
	}
	quoted := strconv.Quote(user)
	if slices.Contains(logindProperty("KillExcludeUsers"), quoted) { // as 1 "root"
		return false
	}
	only := logindProperty("KillOnlyUsers")
	return len(only) <= 2 || slices.Contains(only, quoted)
}

// logindProperty returns a property of systemd's login manager in the form of busctl(1): its type and
// its values.
func logindProperty(name string) []string {
	out, _ := runTool("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1",
		"org.freedesktop.login1.Manager", name)
	return strings.Fields(out)
}

// scopeOfUser returns the words that start a command in a scope of the user's systemd, or nil if that
// does not work, or the scope would end with the user's last session.
func scopeOfUser(user account.User) []string {
	run, err := exec.LookPath("systemd-run")
	if err != nil || !isLingering(user.UID) {
		return nil
	}
	argv := []string{run, "--user", "--scope", "--quiet", "--collect", "--"}
	if _, err := runTool(argv[0], append(argv[1:], "true")...); err != nil {
		return nil
	}
	return argv
}

// isLingering reports whether the user's systemd runs without a session.
func isLingering(uid int) bool {
	out, err := runTool("loginctl", "show-user", "--property=Linger", "--value", strconv.Itoa(uid))
	return err == nil && strings.TrimSpace(out) == "yes"
}

// ticketAdvice ends the warnings about Kerberos tickets.
const ticketAdvice = ": `krenew` or `k5start` prevents that (dcs-tui help environments)"

// ticketWarning returns a warning if jobs seem to need a Kerberos ticket, which expires: this
// session has a cache of tickets, one of the places is on AFS, or a file system is mounted with
// Kerberos. It returns "" otherwise, and if klist(1) is missing or not understood.
func ticketWarning(root string, places ...string) string {
	mounts, _ := os.ReadFile(root + "/proc/self/mountinfo")
	if os.Getenv("KRB5CCNAME") == "" && !slices.ContainsFunc(places, isOnAFS) &&
		!strings.Contains(string(mounts), "sec=krb5") {
		return ""
	}
	if _, err := exec.LookPath("klist"); err != nil {
		return ""
	}
	out, err := runTool("env", "LC_ALL=C", "klist")
	expires, found := ticketExpiry(out)
	switch left := time.Until(expires); {
	case err != nil || found && left <= 0:
		return "this session has no valid Kerberos ticket, so jobs cannot use AFS and other services that require one" +
			ticketAdvice
	case found:
		return "the Kerberos ticket of this session expires in " + text.Span(left) +
			", and jobs that run longer lose AFS and other services that require it" + ticketAdvice
	}
	return ""
}

func isOnAFS(dir string) bool {
	var st unix.Statfs_t
	return statfs(dir, &st) == nil && (uint32(st.Type) == unix.AFS_SUPER_MAGIC || uint32(st.Type) == unix.AFS_FS_MAGIC)
}

// ticketExpiry returns when the ticket-granting ticket in the output of klist expires. The output
// is that of MIT Kerberos or Heimdal in the C locale.
func ticketExpiry(klist string) (at time.Time, found bool) {
	for line := range strings.Lines(klist) {
		words := strings.Fields(line) // the start, the end, and the service
		n := len(words) - 1
		if n < 2 || !strings.HasPrefix(words[n], "krbtgt/") {
			continue
		}
		if strings.Contains(line, ">>>Expired<<<") {
			return time.Time{}, true
		}
		end := strings.Join(words[n/2:n], " ")
		for _, layout := range []string{
			"01/02/06 15:04:05", "01/02/2006 15:04:05", time.DateTime, "Jan 2 15:04:05 2006",
		} {
			if at, err := time.ParseInLocation(layout, end, time.Local); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}
