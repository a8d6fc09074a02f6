package link

import (
	"path"
	"strings"
)

// asJump returns the gateway of a ProxyCommand that does what ProxyJump does, in the form of
// ProxyJump: `ssh -W %h:%p gate`, or the older `ssh gate nc %h %p`. It returns "" for any other
// command.
func asJump(command []string) string {
	if len(command) > 0 && command[0] == "exec" {
		command = command[1:]
	}
	if len(command) == 0 || path.Base(command[0]) != "ssh" {
		return ""
	}
	var host, user, port string
	forwards := false
	rest := command[1:]
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		option := ""
		if len(word) >= 2 && word[0] == '-' {
			option = word[:2]
		}
		switch option {
		case "-q", "-T", "-x", "-a", "-n":
			if len(word) > 2 {
				return ""
			}
		case "-W", "-l", "-p":
			value := word[2:]
			if value == "" {
				if len(rest) == 0 {
					return ""
				}
				value, rest = rest[0], rest[1:]
			}
			switch option {
			case "-W":
				if value != "%h:%p" && value != "[%h]:%p" {
					return ""
				}
				forwards = true
			case "-l":
				user = value
			case "-p":
				port = value
			}
		default:
			if word == "" || word[0] == '-' {
				return ""
			}
			if host != "" { // the command to run at the gateway
				return gatewaySpec(host, user, port, !forwards && netcat(append([]string{word}, rest...)))
			}
			host = word
		}
	}
	return gatewaySpec(host, user, port, forwards)
}

// netcat reports whether a command connects its standard streams with %h %p.
func netcat(words []string) bool {
	switch path.Base(words[0]) {
	case "nc", "ncat", "netcat":
	default:
		return false
	}
	n := len(words)
	return n >= 3 && words[n-2] == "%h" && words[n-1] == "%p"
}

// gatewaySpec returns [user@]host[:port], or "" if the command is not sound.
func gatewaySpec(host, user, port string, sound bool) string {
	if !sound || host == "" || strings.ContainsAny(host, "|;&<>$`, ") {
		return ""
	}
	if user != "" && !strings.Contains(host, "@") {
		host = user + "@" + host
	}
	if port != "" {
		host += ":" + port
	}
	return host
}
