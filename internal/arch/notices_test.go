package arch

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestEveryLinkedModuleHasANotice checks that THIRD_PARTY_NOTICES has a text for Go and for each
// module, in its present version, that the program contains on any of the systems of releases, and
// for no other module.
func TestEveryLinkedModuleHasANotice(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	notices := map[string]string{} // text by heading
	_, list, _ := strings.Cut(read("THIRD_PARTY_NOTICES"), "\n\n")
	for section := range strings.SplitSeq(list, strings.Repeat("=", 80)+"\n") {
		heading, text, _ := strings.Cut(section, "\n")
		notices[heading] = text
	}
	delete(notices, "") // before the first
	linked := map[string]bool{"Go standard library": true}
	systems := regexp.MustCompile(`(?m)^SYSTEMS \?= (.+)$`).FindStringSubmatch(read("Makefile"))
	for _, system := range strings.Fields(systems[1]) {
		cmd := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
		cmd.Dir, cmd.Stderr = "../..", os.Stderr
		goos, goarch, _ := strings.Cut(system, "/")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(system, err)
		}
		for line := range bytes.Lines(out) {
			linked[string(bytes.TrimSpace(line))] = true
		}
	}
	delete(linked, "")
	for module := range linked {
		if len(notices[module]) < 500 {
			t.Errorf("THIRD_PARTY_NOTICES has no license of %s: make notices", module)
		}
	}
	for heading := range notices {
		if !linked[heading] {
			t.Errorf("THIRD_PARTY_NOTICES is about %q, which is not linked: make notices", heading)
		}
	}
}
