package account

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"dcs-tui/internal/polltest"
)

// fakeGetent puts a getent into PATH that runs a script.
func fakeGetent(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	polltest.Must(t, os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestUsersComeFromTheFileAndFromGetent checks that a user is found by name and by number, in
// /etc/passwd first, and that a number is never found as a part of another one.
func TestUsersComeFromTheFileAndFromGetent(t *testing.T) {
	fakeGetent(t,
		`case "$1 $2" in "passwd ldapuser"|"passwd 70000") echo "ldapuser:*:70000:70000::/home/ldap:/bin/sh";; esac`)
	for key, want := range map[string]User{
		"0":        {Name: "root", Home: "/root"},
		"root":     {Name: "root", Home: "/root"},
		"ldapuser": {"ldapuser", 70000, "/home/ldap"},
		"70000":    {"ldapuser", 70000, "/home/ldap"},
	} {
		if got, found := Find(key); got != want || !found {
			t.Errorf("Find(%q): got %+v, %t; want %+v", key, got, found, want)
		}
	}
	for _, key := range []string{"", "-s", "7000", "700000", "nobody-here"} {
		if got, found := Find(key); found {
			t.Errorf("Find(%q): got %+v, want none", key, got)
		}
	}
}

// TestCurrentIsInTheDatabase checks that the account of this process has the name that the database
// gives to its uid.
func TestCurrentIsInTheDatabase(t *testing.T) {
	want, found := Find(strconv.Itoa(os.Getuid()))
	if got := Current(); found && got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestHomeWithoutVariable checks that a process without $HOME, such as a service, has the home directory
// of the user database.
func TestHomeWithoutVariable(t *testing.T) {
	t.Setenv("HOME", "/elsewhere")
	if got, err := Home(); got != "/elsewhere" || err != nil {
		t.Errorf("with $HOME: got %q, %v", got, err)
	}
	u, found := Find(strconv.Itoa(os.Getuid()))
	if !found || u.Home == "" {
		t.Skip("this user has no home directory in the database")
	}
	for _, unset := range []string{"", "relative"} {
		t.Setenv("HOME", unset)
		if got, err := Home(); got != u.Home || err != nil {
			t.Errorf("HOME=%q: got %q, %v; want %q", unset, got, err, u.Home)
		}
	}
}

// TestFindIn checks malformed lines of passwd.
func TestFindIn(t *testing.T) {
	for text, want := range map[string]User{
		"a:x:1:1::/h:/s\n":                 {"a", 1, "/h"},
		"+::::::\na:x:1:1::/h:/s":          {"a", 1, "/h"},
		"a:x:1:1::relative:/s\n":           {"a", 1, ""},
		"a:x:one:1::/h:/s\n":               {},
		"a:x:1:1:/h:/s\n":                  {},
		"b:x:1:1::/b:/s\na:x:2:1::/h:/s\n": {"a", 2, "/h"},
	} {
		if got, found := FindIn(text, "a"); got != want || found != (want != User{}) {
			t.Errorf("%q: got %+v, %t; want %+v", text, got, found, want)
		}
	}
}

// TestAddresses checks that each address is listed once, in the order of getent, and that AddressFamily
// selects the database.
func TestAddresses(t *testing.T) {
	fakeGetent(t, `case "$1 $2" in
"ahosts ws01.local")
	printf 'fe80::1%%eth0     STREAM ws01.local\nfe80::1%%eth0 DGRAM\n'
	printf '10.0.0.7  STREAM\n10.0.0.7  DGRAM\n';;
"ahostsv4 ws01.local") echo "10.0.0.7 STREAM";;
"ahosts empty") echo "warning: no address";;
*) exit 2;;
esac`)
	for network, want := range map[string][]string{"tcp": {"fe80::1%eth0", "10.0.0.7"}, "tcp4": {"10.0.0.7"}} {
		got, err := Addresses(t.Context(), network, "ws01.local")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", network, got, err, want)
		}
	}
	for _, name := range []string{"", "-s", "unknown", "empty"} {
		if got, err := Addresses(t.Context(), "tcp", name); err == nil {
			t.Errorf("Addresses(%q): got %q, want an error", name, got)
		}
	}
}
