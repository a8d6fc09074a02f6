//go:build linux

package remote

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTicketExpiry checks the time until which the ticket-granting ticket is valid, in the formats
// of the common versions of klist.
func TestTicketExpiry(t *testing.T) {
	want := time.Date(2026, 11, 9, 20, 0, 1, 0, time.Local)
	const mit = "Ticket cache: FILE:/tmp/krb5cc_1000\nDefault principal: ada@EXAMPLE.ORG\n\n" +
		"Valid starting     Expires            Service principal\n"
	for name, c := range map[string]struct {
		klist string
		at    time.Time
		found bool
	}{
		"MIT": {mit + "11/09/26 09:00:00  11/09/26 09:30:00  afs/example.org@EXAMPLE.ORG\n" +
			"11/09/26 10:00:01  11/09/26 20:00:01  krbtgt/EXAMPLE.ORG@EXAMPLE.ORG\n\trenew until 11/16/26 10:00:00\n",
			want,
			true},
		"MIT, four digits": {mit + "11/09/2026 10:00:01  11/09/2026 20:00:01  krbtgt/EXAMPLE.ORG@EXAMPLE.ORG\n", want,
			true},
		"Heimdal": {"Credentials cache: FILE:/tmp/krb5cc_1000\n        Principal: ada@EXAMPLE.ORG\n\n" +
			"  Issued                Expires               Principal\n" +
			"Nov  9 10:00:01 2026  Nov  9 20:00:01 2026  krbtgt/EXAMPLE.ORG@EXAMPLE.ORG\n", want, true},
		"expired": {
			"Nov  9 10:00:01 2026  >>>Expired<<<         krbtgt/EXAMPLE.ORG@EXAMPLE.ORG\n",
			time.Time{},
			true,
		},
		"no ticket": {mit, time.Time{}, false},
		"nonsense":  {"krbtgt/\nyesterday today krbtgt/X@X\n", time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if at, found := ticketExpiry(c.klist); !at.Equal(c.at) || found != c.found {
				t.Errorf("got %v, %t; want %v, %t", at, found, c.at, c.found)
			}
		})
	}
}

// TestCheckWarnsAboutTickets checks that hosts check warns that a ticket expires, or that there is
// none, if the session uses Kerberos, and only then.
func TestCheckWarnsAboutTickets(t *testing.T) {
	until := func(left time.Duration) string {
		return "echo '11/09/26 10:00:00  " + time.Now().Add(left).Format("01/02/06 15:04:05") +
			"  krbtgt/EXAMPLE.ORG@EXAMPLE.ORG'"
	}
	const kerberos = "KRB5CCNAME=FILE:/tmp/krb5cc_test"
	for name, c := range map[string]struct {
		klist, env string
		want       string
	}{
		"expires": {until(1000 * time.Hour), kerberos, "the Kerberos ticket of this session expires in 4"},
		"expired": {until(-time.Hour), kerberos, "no valid Kerberos ticket"},
		"none":    {"echo 'klist: No credentials cache found' >&2; exit 1", kerberos, "no valid Kerberos ticket"},
		"no time": {"echo Ticket", kerberos, ""},
		"unused":  {"exit 1", "KRB5CCNAME=", ""},
	} {
		t.Run(name, func(t *testing.T) {
			replacePrograms(t, map[string]string{"klist": c.klist})
			w := newWorld(t, c.env)
			o := w.open()
			o.Check = true
			f := w.start(o)
			i := slices.IndexFunc(f.hello.Warnings, func(s string) bool { return strings.Contains(s, "Kerberos") })
			if i < 0 != (c.want == "") || i >= 0 && !strings.Contains(f.hello.Warnings[i], c.want) {
				t.Errorf("warnings %q, want one about %q", f.hello.Warnings, c.want)
			}
		})
	}
	t.Run("on a mount with Kerberos", func(t *testing.T) {
		replacePrograms(t, map[string]string{"klist": "exit 1"})
		w := newWorld(t, "KRB5CCNAME=")
		w.machine().file("proc/self/mountinfo", "36 25 0:32 / /home rw - nfs4 server:/home rw,vers=4.2,sec=krb5p\n")
		o := w.open()
		o.Check = true
		warnings := w.start(o).hello.Warnings
		if !strings.Contains(strings.Join(warnings, "\n"), "no valid Kerberos ticket") {
			t.Errorf("warnings %q", warnings)
		}
	})
}
