package client

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Promise 4: a link that is cut silently at any moment of the bootstrap leaves nothing
// waiting on the host. (A timeout that expires sooner stands in for the real one.)
func TestStalledBootstrapEndsByItself(t *testing.T) {
	real, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("no timeout(1) here: nothing bounds it")
	}
	for _, c := range []struct {
		name         string
		lines        bool   // the five lines are sent
		last, upload string // the last answer before the link is cut, and what is sent after it
	}{
		{"before the lines", false, "sys", ""},
		{"within the lines", false, "sys", "hash\n2000"},
		{"before the upload", true, "need", ""},
		{"within the upload", true, "need", "plain 200000\n" + strings.Repeat("x", 70000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\nshift\nexec " + real + " 1 \"$@\"\n"
			if err := os.WriteFile(filepath.Join(dir, "timeout"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-c", bootstrap("N0"))
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := cmd.Start(); err1 != nil || err2 != nil || err != nil {
				t.Fatal(err1, err2, err)
			}
			if base := filepath.Join(dir, "base"); c.lines {
				io.WriteString(in, "hash\n200000\n"+filepath.Join(dir, "work")+"\nrun/host\n"+base+"\n")
			}
			answers := bufio.NewReader(out)
			for line := ""; !strings.HasPrefix(line, "N0 "+c.last); {
				if line, err = answers.ReadString('\n'); err != nil {
					t.Fatalf("%q, %v", line, err)
				}
			}
			io.WriteString(in, c.upload)
			// A process that was left would hold the output open. The input stays open.
			if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended as if all were well")
			}
		})
	}
}
