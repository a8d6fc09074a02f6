// Package trust decides whether a file can be used as if this account had written it. The commands in
// an inventory, a jobs file, or a run directory are run with the rights of this account, so whoever
// can write such a file has these rights, too.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"dcs-tui/internal/account"
)

// Strictness is what Check does about a file that a group of several accounts can write.
type Strictness int

const (
	// Strict refuses it.
	Strict Strictness = iota
	// WarnGroup accepts it with a warning.
	WarnGroup
)

var (
	mu     sync.Mutex
	owners = map[uint32]bool{} // named with --trust-owner
	warned = map[string]bool{} // paths
)

// AddOwner makes this process trust another account, by its name or uid.
func AddOwner(name string) error {
	uid, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		entry, found := account.Lookup("passwd", name)
		if !found {
			return fmt.Errorf("there is no user %q here", name)
		}
		if uid, err = strconv.ParseUint(entry[2], 10, 32); err != nil {
			return fmt.Errorf("the uid of %s is not a number", name)
		}
	}
	mu.Lock()
	owners[uint32(uid)] = true
	mu.Unlock()
	return nil
}

// isTrusted reports whether an account has our rights anyway, or was named with --trust-owner. As in
// git, root trusts the account that called sudo.
func isTrusted(uid uint32) bool {
	self := uint32(os.Geteuid())
	if uid == self || uid == 0 {
		return true
	}
	if sudo, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32); err == nil && self == 0 && uid == uint32(sudo) {
		return true
	}
	mu.Lock()
	defer mu.Unlock()
	return owners[uid]
}

func isTrustedText(uid string) bool {
	n, err := strconv.ParseUint(uid, 10, 32)
	return err == nil && isTrusted(uint32(n))
}

// Check checks a file that was opened, or a directory. It returns an error if an account that is not
// trusted owns it or can write it. The warning is not empty if a group can write a file for which
// that is allowed; it is returned once per path. Files without an owner, as of simulated disks, pass.
func Check(info fs.FileInfo, path string, strict Strictness) (warning string, err error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil
	}
	danger := "put commands into it"
	if info.IsDir() {
		danger = "replace what is in it"
	}
	if !isTrusted(st.Uid) {
		name := UserName(st.Uid)
		return "", fmt.Errorf("%s belongs to %s, who could %s; --trust-owner %s accepts that", path, name, danger,
			strings.TrimPrefix(name, "user "))
	}
	switch {
	case !info.Mode().IsRegular() && !info.IsDir(): // such as a pipe of the shell
	case info.IsDir() && info.Mode()&fs.ModeSticky != 0: // only owners can replace what is in it
	case st.Mode&0o002 != 0:
		return "", fmt.Errorf("%s can be written by every user of this machine, who could %s; run: chmod go-w %s", path,
			danger, path)
	case st.Mode&0o020 != 0 && !isOwnGroup(st.Gid):
		text := fmt.Sprintf("%s can be written by the group %s, whose members could %s; run: chmod go-w %s", path,
			groupName(st.Gid), danger, path)
		if strict == Strict {
			return "", errors.New(text)
		}
		mu.Lock()
		defer mu.Unlock()
		if !warned[path] {
			warned[path] = true
			return text, nil
		}
	}
	return "", nil
}

// isOwnGroup reports whether a group holds only trusted accounts: root's group, or a group like the
// one that many systems create for each user, without other members.
func isOwnGroup(gid uint32) bool {
	if gid == 0 {
		return true
	}
	if runtime.GOOS == "darwin" {
		return false // the files in /etc have neither the users nor the members of the group staff
	}
	group, found := account.Lookup("group", fmt.Sprint(gid))
	if !found {
		return gid == uint32(os.Geteuid()) // in a container without accounts
	}
	for name := range strings.SplitSeq(group[3], ",") {
		if name == "" {
			continue
		}
		member, found := account.Lookup("passwd", name)
		if !found || !isTrustedText(member[2]) {
			return false
		}
	}
	// Accounts whose primary group it is are not among the members.
	primary := false
	text, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[3] == group[2] {
			if !isTrustedText(f[2]) {
				return false
			}
			primary = true
		}
	}
	return primary || group[3] != "" || group[0] == UserName(uint32(os.Geteuid()))
}

// UserName returns the name of an account, or "user UID".
func UserName(uid uint32) string {
	if entry, found := account.Lookup("passwd", fmt.Sprint(uid)); found {
		return entry[0]
	}
	return fmt.Sprintf("user %d", uid)
}

func groupName(gid uint32) string {
	if entry, found := account.Lookup("group", fmt.Sprint(gid)); found {
		return entry[0]
	}
	return fmt.Sprint(gid)
}
