package hosts

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// isLogins reports whether data is a list of logins rather than TOML: a TOML inventory
// begins with a table or a key.
func isLogins(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			address, _, _ := bytes.Cut(line[1:], []byte("]"))
			return (line[0] != '[' || isIPv6(string(address))) && !bytes.ContainsRune(line, '=')
		}
	}
	return false
}

// ParseLogins reads a list of hosts in the syntax of GNU parallel's --sshloginfile: a line
// [SLOTS/][USER@]HOST[:PORT] for each, where HOST may have ranges such as ws[01-30], may be an IPv6
// address, with brackets if a port follows, or is a colon, which means this machine. # begins a
// comment. The error is of type Problems.
func ParseLogins(data []byte, file string) (*Inventory, []string, error) {
	return parseLogins(string(data), file, true)
}

// ParseLoginList is ParseLogins for the logins of arguments or of a flag. Its problems name no lines.
func ParseLoginList(logins []string, source string) (*Inventory, []string, error) {
	return parseLogins(strings.Join(logins, "\n")+"\n", source, false)
}

// parseLogins parses a list of logins. numbered reports whether its problems name lines.
func parseLogins(list, source string, numbered bool) (*Inventory, []string, error) {
	r := newReader(&notes{file: source}, nil)
	n := 0
	for line := range strings.Lines(list) {
		if numbered {
			n++
		}
		login, _, _ := strings.Cut(line, "#")
		login = strings.TrimSpace(login)
		if login != "" {
			r.readLogin(login, n)
		}
	}
	if len(r.problems) == 0 && len(r.hosts) == 0 {
		r.addProblem(0, "it names no host")
	}
	return r.inventory([]byte(list))
}

func (r *inventoryReader) readLogin(text string, line int) {
	h := defaultHost()
	h.Slots, h.File, h.Line = SlotRule{Less: 1}, r.file, line
	rest := text
	if digits, after, ok := strings.Cut(text, "/"); ok {
		slots, err := strconv.Atoi(digits)
		if err != nil || slots < 1 || slots > jobs.MaxSlots {
			r.addProblem(line, "%q does not begin with a number of slots from 1 to %d: "+
				"a login is [SLOTS/][USER@]HOST[:PORT]", text, jobs.MaxSlots)
			return
		}
		h.Slots, rest = SlotRule{Fixed: slots}, after
	}
	if strings.ContainsAny(rest, " \t") {
		r.addProblem(line,
			"%q has spaces: a login is [SLOTS/][USER@]HOST[:PORT]; options of ssh belong in ~/.ssh/config", text)
		return
	}
	if rest == ":" {
		local := Local().Hosts[0]
		h.Link, rest = local.Link, local.Name
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 { // a user of a directory service has an @, too
		user, err := parseUser(rest[:at])
		if err != nil {
			r.addProblem(line, "%q has no user before the @: %v", text, err)
			return
		}
		h.User, rest = user, rest[at+1:]
	}
	host, port, err := cutPort(rest)
	if err != nil {
		r.addProblem(line, "%q: %v", text, err)
		return
	}
	h.Port = port
	names := []string{ipv6Name(host)}
	addresses := [][]string{{host}}
	if names[0] == "" {
		if names, err = Expand(host); err != nil {
			r.addProblem(line, "%v", err)
			return
		}
		addresses, _ = r.addresses(h, &draft{}, names, 0)
	}
	for i, name := range names {
		if slices.ContainsFunc(r.hosts, func(h *Host) bool { return h.Name == name && h.Port != port }) {
			names[i] = fmt.Sprintf("%s-%d", name, cmp.Or(port, 22)) // another server behind the same address
		}
	}
	r.addHosts(line, names, addresses, h)
}

// cutPort cuts HOST, HOST:PORT, [ADDRESS]:PORT, and an IPv6 address with or without brackets. port
// is 0 if there is none.
func cutPort(s string) (host string, port int, err error) {
	host, digits, hasPort := strings.Cut(s, ":")
	switch inner, after, bracketed := strings.Cut(s, "]"); {
	case bracketed && strings.HasPrefix(s, "[") && strings.Contains(inner, ":"):
		host = inner[1:]
		if !isIPv6(host) {
			return "", 0, fmt.Errorf("%q is not an IPv6 address", host)
		}
		digits, hasPort = strings.CutPrefix(after, ":")
		if !hasPort && after != "" {
			return "", 0, fmt.Errorf("only :PORT may follow the ]")
		}
	case isIPv6(s):
		return s, 0, nil
	case strings.Count(s, ":") > 1:
		return "", 0, fmt.Errorf("%q is not an IPv6 address; one with a port is [ADDRESS]:PORT", s)
	}
	if !hasPort {
		return host, 0, nil
	}
	port, err = ParsePort(digits)
	return host, port, err
}

// ParsePort parses the number of a port.
func ParsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", text.Shorten(s))
	}
	return int(n), nil
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6()
}

// ipv6Name returns the name in the inventory of a host that is given by its IPv6 address: names
// have no colons. It returns "" for other hosts.
func ipv6Name(host string) string {
	if !isIPv6(host) {
		return ""
	}
	return "ip6-" + strings.TrimPrefix(strings.NewReplacer(":", "-", "%", "-").Replace(host), "-")
}
