package jobs

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
)

// Whatever a jobs file holds: no panic; what is accepted is what was written
// down in jobs.jsonl and comes back from it; errors name the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte("echo 1\n# c\n\n#DCS default tries=2 env.A='b c'\n#DCS name=\"x\\\"\" after=1\na \\\n b\n"), false)
	f.Add([]byte("#DCS timeout=1d12h mem=8G tags=a,b deadline=2026-11-20 hardness=1,2\r\ncat \xff\r\n"), false)
	f.Add([]byte("\ufeff#dcs x=1\n#DCS: \n#DCS a = b\nx\\\n#DCS a=b"), false)
	f.Add([]byte(`{"command":"a\n\ud83d\ude00","env":{"A":1},"params":{"p":"q"},"tags":["x"],"est":null}`), true)
	f.Add([]byte(`{"command":"a","after":[1,"2-3"],"priority":-1.5e+3}`), true)
	f.Add([]byte(`{"\n""`), true)
	f.Add([]byte(`{"m\nd":`), true) // a key of two lines made an error of two lines
	f.Fuzz(func(t *testing.T, data []byte, jsonl bool) {
		specs, err := Parse(bytes.NewReader(data), "f", jsonl, 1)
		if err != nil {
			if specs != nil {
				t.Fatal("a bad file gave jobs")
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("%q does not name the file", line)
				}
			}
			return
		}
		file := []byte(SpecsHeader)
		scanner := NewScanner(bytes.NewReader(data), "f", jsonl, 1)
		for i, s := range specs {
			if s.ID != ID(i+1) || s.Line < 1 || strings.Trim(s.Command, " \t\r\n") == "" || strings.IndexByte(s.Command, 0) >= 0 {
				t.Fatalf("job %d: %+v", i+1, s)
			}
			if one, err := scanner.Next(); err != nil || !reflect.DeepEqual(one, s) {
				t.Fatalf("read one by one: %+v, %v", one, err)
			}
			file = AppendSpec(file, s)
		}
		if _, err := scanner.Next(); err != io.EOF {
			t.Fatal(err)
		}
		stored, err := DecodeSpecs(file)
		again := stored.Specs
		if err != nil || !reflect.DeepEqual(specs, again) {
			t.Fatalf("%v\n%s", err, file)
		}
	})
}
