package hosts

import (
	"bytes"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// isLogins reports whether data is a list of logins rather than TOML: a TOML inventory
// begins with a table or a key.
func isLogins(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line[0] != '[' && !bytes.ContainsRune(line, '=')
		}
	}
	return false
}

// ParseLogins reads a list of hosts in the syntax of GNU parallel's --sshloginfile: a line
// [SLOTS/][USER@]HOST[:PORT] for each, where HOST may have ranges such as ws[01-30], or is
// a colon, which means this machine. # begins a comment. The error is of type Problems.
func ParseLogins(data []byte, file string) (*Inventory, []string, error) {
	r := newReader(&notes{file: file}, nil)
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text != "" {
			r.readLogin(text, n)
		}
	}
	if len(r.problems) == 0 && len(r.hosts) == 0 {
		r.addProblem(0, "it names no host")
	}
	return r.inventory(data)
}

func (r *inventoryReader) readLogin(text string, line int) {
	h := defaultHost()
	h.Slots, h.File, h.Line = SlotRule{Less: 1}, r.file, line
	rest := text
	if digits, after, ok := strings.Cut(text, "/"); ok {
		slots, err := strconv.Atoi(digits)
		if err != nil || slots < 1 || slots > jobs.MaxSlots {
			r.addProblem(line, "%q does not begin with a number of slots from 1 to %d: a login is [SLOTS/][USER@]HOST[:PORT]", text, jobs.MaxSlots)
			return
		}
		h.Slots, rest = SlotRule{Fixed: slots}, after
	}
	if strings.ContainsAny(rest, " \t") {
		r.addProblem(line, "%q has spaces: a login is [SLOTS/][USER@]HOST[:PORT]; options of ssh belong in ~/.ssh/config", text)
		return
	}
	if rest == ":" {
		local := Local().Hosts[0]
		h.Link, rest = local.Link, local.Name
	}
	if user, host, ok := strings.Cut(rest, "@"); ok {
		h.User, rest = user, host
		if user == "" || strings.HasPrefix(user, "-") {
			r.addProblem(line, "%q has no user before the @", text)
			return
		}
	}
	if host, port, ok := strings.Cut(rest, ":"); ok {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			r.addProblem(line, "%q is not a port from 1 to 65535", port)
			return
		}
		h.Port, rest = n, host
	}
	names, err := Expand(rest)
	if err != nil {
		r.addProblem(line, "%v", err)
		return
	}
	addresses, _ := r.addresses(h, &draft{}, names, 0)
	r.addHosts(line, names, addresses, h)
}
