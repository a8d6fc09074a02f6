package runview

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// HostText is something that was said of a host, such as why it cannot be used.
type HostText struct {
	Host, Text string
	At         time.Time // may be zero
}

// HostGroup is a set of hosts of which the same was said. Nothing of it is cleaned.
type HostGroup struct {
	Hosts []string // in the order given
	// Text is without the name of the host before it. Where texts differ only in names,
	// addresses, and fingerprints, HOST and … stand for these.
	Text string
	At   time.Time // when it was said of the first

	first string // the whole text of the first
}

// GroupHosts groups hosts by cause, in the order of the first host of each group.
func GroupHosts(texts []HostText) []HostGroup {
	var list []HostGroup
	at := map[string]int{}
	for _, t := range texts {
		own := WithoutSubject(t.Text, t.Host)
		cause := causeOf(t.Host, own)
		i, ok := at[cause]
		if !ok {
			i, at[cause] = len(list), len(list)
			list = append(list, HostGroup{Text: own, At: t.At, first: t.Text})
		}
		g := &list[i]
		if g.Hosts = append(g.Hosts, t.Host); g.Text != own {
			g.Text = cause
		}
	}
	return list
}

// Name names the hosts of a group, with ranges: "ws[01-30], here".
func (g *HostGroup) Name() string {
	const maxPatterns = 6
	patterns := hosts.Fold(g.Hosts)
	if more := len(patterns) - maxPatterns; more > 1 {
		patterns = append(patterns[:maxPatterns], fmt.Sprintf("%d more", more))
	}
	return strings.Join(patterns, ", ")
}

// Title is the name, and the number of hosts if there are several: "ws[01-30] (30 hosts)".
func (g *HostGroup) Title() string {
	if len(g.Hosts) == 1 {
		return g.Hosts[0]
	}
	return g.Name() + " (" + jobs.Plural(len(g.Hosts), "host") + ")"
}

// Sentence is the text with its subject: that of the host itself if there is only one.
func (g *HostGroup) Sentence() string {
	switch {
	case len(g.Hosts) == 1:
		return g.first
	case strings.HasPrefix(g.first, g.Hosts[0]+" "):
		return g.Title() + " " + g.Text
	}
	return g.Title() + ": " + g.Text
}

var (
	addressPort = regexp.MustCompile(`(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):(\d+\b)`)
	address     = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	fingerprint = regexp.MustCompile(`\b(SHA256|MD5):[A-Za-z0-9+/=:]+`)
)

// causeOf returns a text that is the same for all hosts with the same trouble: without what
// differs from host to host.
func causeOf(name, text string) string {
	text = fingerprint.ReplaceAllString(text, "$1:…")
	text = addressPort.ReplaceAllString(text, "HOST:$2")
	text = address.ReplaceAllString(text, "HOST")
	// The name as a word, and as the first label of a domain name.
	named, err := regexp.Compile(`(^|[^A-Za-z0-9_.-])` + regexp.QuoteMeta(name) + `(\.[A-Za-z0-9.-]*[A-Za-z0-9])?($|[^A-Za-z0-9_-])`)
	if err != nil { // never: the name is quoted
		return text
	}
	return named.ReplaceAllString(text, "${1}HOST${3}")
}

// WithoutSubject cuts the name of a host, or "job 7", off the beginning of a text.
func WithoutSubject(text, subject string) string {
	if rest, ok := strings.CutPrefix(text, subject); ok && subject != "" && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ": ")) { // not the address ws01:22
		return strings.TrimLeft(rest, ": ")
	}
	return text
}
