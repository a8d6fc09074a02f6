package disktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"dcs-tui/jobs/rundir"
)

// Elsewhere rewrites the owner file of a run as if a dispatcher on another machine had written it.
// change, which may be nil, changes its fields.
func Elsewhere(t testing.TB, run *rundir.Run, change func(owner map[string]any)) {
	t.Helper()
	b, err := os.ReadFile(run.Path(rundir.OwnerFile))
	if err != nil {
		t.Fatal(err)
	}
	size := len(b)
	var owner map[string]any
	if err := json.Unmarshal(b[:size-9], &owner); err != nil {
		t.Fatal(err)
	}
	owner["boot"], owner["host"], owner["left"] = "that of another machine", "elsewhere", false
	if change != nil {
		change(owner)
	}
	if b, err = json.Marshal(owner); err != nil {
		t.Fatal(err)
	}
	b = append(b, bytes.Repeat([]byte{' '}, size-9-len(b))...)
	b = fmt.Appendf(b, "%08x\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	f, err := os.OpenFile(run.Path(rundir.OwnerFile), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, 0) // in place like a heartbeat, because others may read it now
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Heartbeats is a change for Elsewhere: the dispatcher has sent another heartbeat.
func Heartbeats(owner map[string]any) { owner["beat"] = owner["beat"].(float64) + 1 }
