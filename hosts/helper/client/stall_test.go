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

// Promise 4: a link that is cut in silence while the program is being sent leaves
// nothing waiting on the host. (timeout stands for one that is quicker.)
func TestStalledUploadEndsByItself(t *testing.T) {
	real, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("no timeout(1) here: nothing bounds it")
	}
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
	base := filepath.Join(dir, "base")
	io.WriteString(in, "hash\n200000\n"+filepath.Join(dir, "work")+"\nrun/host\n"+base+"\n")
	answers := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "N0 need"); {
		if line, err = answers.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	io.WriteString(in, "plain 200000\n"+strings.Repeat("x", 70000))
	// Whatever still ran would hold the output open; the input stays open.
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended as if all were well")
	}
}
