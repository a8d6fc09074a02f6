package sshconf

import (
	"strings"
)

// pattern matches with * and ?.
func pattern(p, s string) bool {
	// Greedy with one point to go back to: linear in practice, no recursion.
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// anyPattern is true when one of the patterns fits and no negated one does.
func anyPattern(patterns []string, s string) bool {
	found := false
	for _, p := range patterns {
		if n, negated := strings.CutPrefix(p, "!"); negated {
			if pattern(n, s) {
				return false
			}
		} else if pattern(p, s) {
			found = true
		}
	}
	return found
}

// verdict is the answer of a Match line.
type verdict uint8

const (
	no verdict = iota
	yes
	undecided // it asks for something that only OpenSSH can find out
)

// criteria are what a Match line is judged by.
type criteria struct {
	host      string // after HostName
	original  string
	user      string
	localUser string
	tag       string
	final     bool // this is the last pass
}

// judge decides a Match line. wantsFinal says that it asks for a second pass;
// what is the criterion that could not be decided.
func (c *criteria) judge(args []string) (v verdict, wantsFinal bool, what string) {
	v = yes
	for i := 0; i < len(args); i++ {
		word, negated := strings.CutPrefix(args[i], "!")
		key, arg, hasArg := strings.Cut(word, "=")
		key = strings.ToLower(key)
		var hit bool
		switch key {
		case "all":
			hit = true
		case "canonical", "final": // canonicalisation itself is never done here
			wantsFinal = wantsFinal || key == "final"
			hit = c.final
		default:
			if !hasArg {
				if i++; i == len(args) {
					return no, wantsFinal, ""
				}
				arg = args[i]
			}
			switch key {
			case "host":
				hit = anyPattern(strings.Split(strings.ToLower(arg), ","), strings.ToLower(c.host))
			case "originalhost":
				hit = anyPattern(strings.Split(strings.ToLower(arg), ","), strings.ToLower(c.original))
			case "user":
				hit = anyPattern(strings.Split(arg, ","), c.user)
			case "localuser":
				hit = anyPattern(strings.Split(arg, ","), c.localUser)
			case "tagged":
				hit = anyPattern(strings.Split(arg, ","), c.tag)
			default: // exec, localnetwork, version, …
				if v == yes {
					v, what = undecided, key
				}
				continue
			}
		}
		if hit == negated {
			v = no
		}
	}
	return v, wantsFinal, what
}
