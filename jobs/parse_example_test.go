package jobs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestExample checks that the first command of the README works. The example parses, and its last
// and shortest job computes pi from its command and environment alone.
func TestExample(t *testing.T) {
	specs, err := ParseFile("../examples/jobs.txt", 1)
	if err != nil || len(specs) != 40 {
		t.Fatalf("%d jobs, %v", len(specs), err)
	}
	for _, s := range specs {
		if s.Estimate == 0 || s.Queue == "" || (s.ID > 32) != (s.Name != "") || !strings.HasPrefix(s.Command, "awk ") {
			t.Errorf("job %d: %q %+v", s.ID, s.Command, s.Options)
		}
	}
	machin := specs[39]
	cmd := exec.Command("/bin/sh", "-c", machin.Command)
	cmd.Env = os.Environ()
	for _, e := range machin.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "pi=3.14159265359") {
		t.Errorf("%q, %v", out, err)
	}
}
