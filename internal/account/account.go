// Package account asks the system for users, groups, and addresses of machines. A static Go program
// reads only /etc/passwd, /etc/group, /etc/hosts, and DNS. Everything else that the name service of
// the system knows (LDAP, mDNS, and more, see nsswitch.conf(5)) comes from getent(1).
package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lookupTimeout bounds a question to a directory service.
const lookupTimeout = 5 * time.Second

// User is an account.
type User struct {
	Name string
	UID  int
	Home string // absolute, or ""
}

// Find finds a user by name or uid in /etc/passwd or with getent. It may take lookupTimeout.
func Find(key string) (User, bool) {
	fields, _ := Lookup("passwd", key)
	return parseUser(fields)
}

// FindIn finds a user by name or uid in lines of passwd(5).
func FindIn(text, key string) (User, bool) {
	return parseUser(findLine(text, "passwd", key))
}

// Current returns the account of this process. Like OpenSSH it takes name and home directory from
// the user database. For a user who is not there, the name comes from $USER, $LOGNAME, or id(1),
// and the home directory from $HOME. Without any of them the name is "user UID". The answer is kept.
var Current = sync.OnceValue(func() User {
	uid := os.Getuid()
	u, found := Find(strconv.Itoa(uid))
	if !found {
		u = User{Name: cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")), UID: uid, Home: os.Getenv("HOME")}
	}
	if u.Name == "" {
		out, _ := output(context.Background(), "id", "-un")
		u.Name = cmp.Or(strings.TrimSpace(out), fmt.Sprintf("user %d", uid))
	}
	return u
})

// Home returns what a shell puts for ~: $HOME, or else the home directory in the user database, because
// services and env -i leave $HOME unset.
func Home() (string, error) {
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	if home := Current().Home; home != "" {
		return home, nil
	}
	return "", errors.New("there is no home directory: $HOME is not set, and the user database has none")
}

// Lookup returns the fields of an entry of the database "passwd" or "group", by name or number. It
// asks getent about one that is not in the file in /etc. It may take lookupTimeout.
func Lookup(database, key string) (fields []string, found bool) {
	if key == "" || key[0] == '-' {
		return nil, false
	}
	text, _ := os.ReadFile("/etc/" + database)
	fields = findLine(string(text), database, key)
	if fields != nil {
		return fields, true
	}
	out, _ := output(context.Background(), "getent", database, key)
	fields = findLine(out, database, key)
	return fields, fields != nil
}

// Addresses returns the addresses of a name, in the order to try, as the name service of the system
// knows them. network is "tcp", "tcp4", or "tcp6". It may take lookupTimeout.
func Addresses(ctx context.Context, network, name string) ([]string, error) {
	if name == "" || name[0] == '-' {
		return nil, fmt.Errorf("%q is not the name of a machine", name)
	}
	database := "ahosts" + map[string]string{"tcp4": "v4", "tcp6": "v6"}[network]
	out, err := output(ctx, "getent", database, name)
	var list []string
	for line := range strings.Lines(out) {
		address, _, _ := strings.Cut(line, " ")
		_, invalid := netip.ParseAddr(address)
		if invalid == nil && !slices.Contains(list, address) {
			list = append(list, address)
		}
	}
	if len(list) == 0 {
		return nil, cmp.Or(err, errors.New("getent prints no address"))
	}
	return list, nil
}

// output returns what a program prints within lookupTimeout.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return string(out), err
}

// numFields is the number of fields of a line of each database.
var numFields = map[string]int{"passwd": 7, "group": 4}

func findLine(text, database, key string) []string {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) == numFields[database] && (fields[0] == key || fields[2] == key) {
			return fields
		}
	}
	return nil
}

// parseUser returns the user of a line of passwd(5); false if it is nil or malformed.
func parseUser(fields []string) (User, bool) {
	if fields == nil {
		return User{}, false
	}
	uid, err := strconv.Atoi(fields[2])
	if err != nil {
		return User{}, false
	}
	u := User{Name: fields[0], UID: uid, Home: fields[5]}
	if !filepath.IsAbs(u.Home) {
		u.Home = ""
	}
	return u, true
}
