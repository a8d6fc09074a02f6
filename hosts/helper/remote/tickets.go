//go:build linux

package remote

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/text"
)

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
