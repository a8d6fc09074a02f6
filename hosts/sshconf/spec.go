package sshconf

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// parseSpec reads [user@]host[:port], an IPv6 address in brackets when a port follows.
func parseSpec(spec string) (given, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(spec), "ssh://"), "/")
	var g given
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		g.user, rest = rest[:at], rest[at+1:]
		if g.user == "" {
			return g, fmt.Errorf("%q is not [user@]host[:port]", spec)
		}
	}
	g.alias = rest
	if strings.Count(rest, ":") == 1 || strings.HasPrefix(rest, "[") {
		if host, port, err := net.SplitHostPort(rest); err == nil {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return g, fmt.Errorf("%q: %q is not a port", spec, port)
			}
			g.alias, g.port = host, int(n)
		} else {
			g.alias = strings.Trim(rest, "[]")
		}
	}
	if g.alias == "" || g.alias[0] == '-' || strings.ContainsAny(g.alias, " \t/") {
		return g, fmt.Errorf("%q is not [user@]host[:port]", spec)
	}
	return g, nil
}

// asOption writes gateways as the value of ssh's -J.
func asOption(specs []string) (string, error) {
	if len(specs) == 0 {
		return "none", nil
	}
	var out []string
	for _, spec := range specs {
		g, err := parseSpec(spec)
		if err != nil {
			return "", err
		}
		one := g.alias
		if strings.Contains(one, ":") {
			one = "[" + one + "]"
		}
		if g.user != "" {
			one = g.user + "@" + one
		}
		if g.port != 0 {
			one += ":" + strconv.Itoa(g.port)
		}
		out = append(out, one)
	}
	return strings.Join(out, ","), nil
}
