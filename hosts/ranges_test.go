package hosts

import (
	"slices"
	"strings"
	"testing"
)

// TestRangesAreExpanded checks the names that a pattern stands for, and the errors of patterns that
// stand for none.
func TestRangesAreExpanded(t *testing.T) {
	for _, c := range []struct{ pattern, want, wantErr string }{
		{"melon4", "melon4", ""},
		{"node[01-03]", "node01 node02 node03", ""},
		{"node[8-11]", "node8 node9 node10 node11", ""},
		{"node[08-11]", "node08 node09 node10 node11", ""},
		{"node[099-101]", "node099 node100 node101", ""},
		{"ws[1,3,5-7]", "ws1 ws3 ws5 ws6 ws7", ""},
		{"ws[ 1 , 2 ]", "ws1 ws2", ""},
		{"r[1-2]n[1-2].lab", "r1n1.lab r1n2.lab r2n1.lab r2n2.lab", ""},
		{"[1-2]", "1 2", ""},
		{"a[0-1]", "a0 a1", ""},
		{"node[01-02].x[3].de", "node01.x3.de node02.x3.de", ""},
		{"a[1-2", "", "do not match"},
		{"a1-2]", "", "] without a ["},
		{"a]1[", "", "do not match"},
		{"a[]", "", "number is missing"},
		{"a[1,,2]", "", "number is missing"},
		{"a[1-]", "", "number is missing"},
		{"a[x]", "", "is not a number"},
		{"a[[1-2]]", "", "is not a number"},
		{"a[3-1]", "", "runs backwards"},
		{"a[1-012]", "", "differ in width"},
		{"a[1-999999999]", "", "more than 10000 hosts"},
		{"a[1-99999999999999]", "", "too long"},
		{"a[1-5000,1-5001]", "", "more than 10000 hosts"},
		{"a[1-1000]b[1-1000]", "", "more than 10000 hosts"},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			got, err := Expand(c.pattern)
			if strings.Join(got, " ") != c.want || (err != nil) != (c.wantErr != "") || err != nil &&
				!strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("Expand(%q) = %q, %v; want %q, %q", c.pattern, got, err, c.want, c.wantErr)
			}
		})
	}
}

// FuzzExpand checks that a pattern has a limited number of names without brackets.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"node[01-12]", "ws[1,3,5-7]", "a[1-2]b[3-4]", "a[", "]", "a[1-999999999]", "[0-9999]x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		names, err := Expand(pattern)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > MaxHosts {
			t.Fatalf("%q: %d names", pattern, len(names))
		}
		if !strings.ContainsAny(pattern, "[]") && names[0] != pattern {
			t.Fatalf("%q became %q", pattern, names[0])
		}
		if slices.ContainsFunc(names, func(s string) bool { return strings.ContainsAny(s, "[]") }) {
			t.Fatalf("%q left brackets", pattern)
		}
	})
}

// TestFoldedRangesExpandToTheSameNames checks that Fold returns patterns that Expand expands to the
// same names.
func TestFoldedRangesExpandToTheSameNames(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"ws01 ws02 ws03", "ws[01-03]"},
		{"ws3 ws1 here ws2", "ws[1-3] here"},
		{"ws08 ws09 ws10 ws12", "ws[08-10,12]"},
		{"ws8 ws9 ws10", "ws[8-10]"},
		{"ws09 ws9 ws010", "ws[09,9,010]"},
		{"n1.lab n2.lab n3.other", "n[1-2].lab n3.other"},
		{"r1n1 r1n2 r2n1", "r1n[1-2] r2n1"},
		{"a 99999999999 99999999998", "a 99[999999998-999999999]"},
		{"10.0.0.1 10.0.0.2", "10.0.0.1 10.0.0.2"},
		{"", ""},
	} {
		t.Run(c.names, func(t *testing.T) {
			names := strings.Fields(c.names)
			got := Fold(names)
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s: %s, want %s", c.names, text, c.want)
			}
			var back []string
			for _, pattern := range got {
				list, err := Expand(pattern)
				if err != nil {
					t.Fatal(err)
				}
				back = append(back, list...)
			}
			slices.Sort(names)
			slices.Sort(back)
			if !slices.Equal(names, back) {
				t.Errorf("%s is %q again", c.names, back)
			}
		})
	}
}
