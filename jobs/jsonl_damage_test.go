package jobs

import (
	"bytes"
	"reflect"
	"testing"
)

// damageFile is a jobs.jsonl of a few jobs with all that a line may hold.
func damageFile() ([]*Spec, []byte) {
	shared := &Options{File: "sweep.txt", Tries: 2}
	specs := []*Spec{
		fullSpec(),
		{ID: 2, Command: "rm -r ./J*", Options: NoOptions}, // J and * are one bit away from a newline
		{ID: 3, Line: 9, Command: "cat \xff", Options: shared},
		{ID: 4, Line: 10, Command: `echo ,"crc":"00000000"}`, Options: shared},
	}
	data := []byte(SpecsHeader)
	for _, s := range specs {
		data = AppendSpec(data, s)
	}
	return specs, data
}

// costs fails the test unless the damaged file gives every job as it was, but for
// at most n that say that they are damaged: no other command is ever run.
func costs(t *testing.T, what string, at, n int, specs []*Spec, data []byte) {
	t.Helper()
	stored, err := DecodeSpecs(data)
	if err != nil {
		t.Fatalf("%s at %d: the whole file is refused: %v", what, at, err)
	}
	if len(stored.Specs) != len(specs) {
		t.Fatalf("%s at %d: %d jobs of %d, %q", what, at, len(stored.Specs), len(specs), stored.Damage)
	}
	lost := 0
	for i, s := range stored.Specs {
		switch {
		case s.Damage != "":
			lost++
		case !reflect.DeepEqual(s, specs[i]):
			t.Fatalf("%s at %d: job %d is now %q", what, at, s.ID, s.Command)
		}
	}
	if lost > n || len(stored.Damage) == 0 {
		t.Fatalf("%s at %d: %d jobs are lost; told: %q", what, at, lost, stored.Damage)
	}
}

// Whatever bit of jobs.jsonl flips, whatever byte becomes a newline or vanishes:
// at most the job of that line is lost, and says so; none runs another command,
// and none disappears (promises 1 and 5).
func TestJobsFileEveryBit(t *testing.T) {
	specs, data := damageFile()
	for i := range data {
		c := bytes.Clone(data)
		for bit := range 8 {
			c[i] = data[i] ^ 1<<bit
			costs(t, "bit flipped in byte", i, 1, specs, c)
		}
		if header := len(SpecsHeader); i >= header {
			if c[i] = '\n'; data[i] != '\n' {
				costs(t, "newline in place of the byte", i, 1, specs, c)
			}
			if i != len(data)-1 { // without its last byte it is a line cut off
				costs(t, "byte missing", i, 1, specs, append(bytes.Clone(data[:i]), data[i+1:]...))
			}
			costs(t, "zeros from here to the line's end", i, 1, specs, zeroLine(data, i))
		}
	}
}

func zeroLine(data []byte, from int) []byte {
	c := bytes.Clone(data)
	for i := from; i == from || i < len(c) && c[i] != '\n'; i++ {
		c[i] = 0
	}
	return c
}

// A file whose last newline is damaged says so, because what is added needs one.
func TestJobsFileUnended(t *testing.T) {
	specs, data := damageFile()
	data[len(data)-1] = 0x0b
	stored, err := DecodeSpecs(data)
	if err != nil || !stored.Unended || stored.Good != int64(len(data)) || !reflect.DeepEqual(stored.Specs, specs) {
		t.Fatalf("%d jobs, %d of %d bytes, unended %v, %v", len(stored.Specs), stored.Good, len(data), stored.Unended, err)
	}
}

// The lines of an older program have no checksum and are read as before; those
// that are added have one.
func TestJobsFileWithoutChecksums(t *testing.T) {
	data := []byte(specsHeader1 + "\n" + `{"id":1,"line":3,"command":"echo 1","options":{"tries":2}}` + "\n")
	data = AppendSpec(data, &Spec{ID: 2, Command: "echo 2", Options: NoOptions})
	stored, err := DecodeSpecs(data)
	if err != nil || len(stored.Damage) > 0 || len(stored.Specs) != 2 {
		t.Fatalf("%d jobs, %q, %v", len(stored.Specs), stored.Damage, err)
	}
	want := &Spec{ID: 1, Line: 3, Command: "echo 1", Options: &Options{Tries: 2}}
	if !reflect.DeepEqual(stored.Specs[0], want) {
		t.Errorf("%+v", stored.Specs[0])
	}
	data[len(data)-25] ^= 4 // in the command of job 2
	stored, err = DecodeSpecs(data)
	if err != nil || len(stored.Specs) != 2 || stored.Specs[1].Damage == "" {
		t.Errorf("a damaged line among old ones: %+v, %v", stored, err)
	}
}
