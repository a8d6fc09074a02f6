package cli

import (
	"strings"
	"testing"
)

// K4: a template on standard input is no list of commands: what gives a parameter its
// values is not run, and what does run it is named.
func TestStreamedTemplate(t *testing.T) {
	next := readingJobs(strings.NewReader("[ -e x ] && echo [x]\n[x] 1 2\n"))
	if s, err := next(); err != nil || s.Command != "[ -e x ] && echo [x]" {
		t.Fatal(s, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "standard input:2: this is a template, which dcs-tui grid - reads") {
		t.Error(err)
	}
}
