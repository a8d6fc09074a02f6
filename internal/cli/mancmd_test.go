package cli

import (
	"bytes"
	"strings"
	"testing"
)

// The header of the manual page fits on one line: the name on both sides, and a few
// words in between.
func TestManualPageHeader(t *testing.T) {
	root := newApp().root()
	var page bytes.Buffer
	root.SetOut(&page)
	root.SetArgs([]string{"man"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(page.String(), "\n")
	fields := strings.Split(header, `"`)
	if !strings.HasPrefix(header, ".TH DCS-TUI 1 ") || len(fields) != 7 || fields[5] != "User Commands" {
		t.Errorf("header: %s", header)
	}
	for _, want := range []string{".SH NAME\ndcs-tui - Run thousands", "\n.RS 4\n.TP\n\\fB--accept-new\\fP\n", "\n\\fBrun\\fP [flags]"} {
		if !strings.Contains(rest, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
