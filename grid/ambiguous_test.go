package grid

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAmbiguousValuesAreRefused checks that values which are not what they look like are errors, and
// that their quoted or plain forms are accepted.
func TestAmbiguousValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"0.1,\u00a01", "U+00A0"}, {"“rbf”, “linear fit”", "U+201C"}, {"−1, 1", "U+2212"}, {"1,5 2,7",
			"1,5 may be one number or two"}, {"1 2,5", "2,5 may be"},
		{"'“rbf”'", ""}, {"1,2,3 4,5,6", ""}, {"1,5", ""}, {"1, 5, 2", ""}, {"0.1,1 10", ""}, {"1,5, 2,7",
			""}, {"1 2 3", ""}, {"a,b c,d", ""},
		{"1,000", "1,000 may be one number or two"}, {"0,05 0,1", "0,05 may be"}, {"1,000,000",
			"1,000 may be"}, {"01,02", ""}, {"0,1", ""}, {"'1,000'", ""},
		{"1:5", "1:5 may be a range or a text: a range is written 1..5"}, {"0:0.1:1",
			"a range is written 0..1 step 0.1"}, {"1-5", "a range is written 1..5"},
		{"2026-01-01..2026-01-31", "a range has numbers at its ends"}, {"a..e", "a range has numbers"}, {"1 to 5",
			"to may be a range or a text: a range is written 1..5"},
		{"1:5 step 2", "1:5 may be"}, {"a step 2", "step follows a range"}, {"np.arange(5)",
			"ranges are written"}, {"log(1..9) x3", "ranges are written"}, {"0.1-0.5", "0.1..0.5"},
		{"'1:5' \"1-5\" '2026-01-01..2026-01-31' 'a..e'",
			""}, {"2026-01-01 10:30:00Z host:80 1e-3 a-b -1 ../a a/../b f(5) [1-2]x", ""}, {"a to b", ""},
		{"1, to, 5", ""},
	} {
		t.Run(c.values, func(t *testing.T) {
			_, err := Config{}.Parse(context.Background(), strings.NewReader("echo [a]\n[a] "+c.values+"\n"), "t.txt")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.values, err, c.want)
			}
		})
	}
	if _, err := (Config{Again: true}).Parse(context.Background(),
		strings.NewReader("echo [a] [b]\n[a] 1:5, 1-5, a..b\n[b] 1,5 2,7\n"), "t.txt"); err != nil {
		t.Errorf("a template that an older program accepted: %v", err)
	}
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte("\ufeffone\r\ntwo\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readValueLines(file, nil); err != nil || strings.Join(got, "|") != "one|two" {
		t.Errorf("a list with a byte order mark: got %q, %v", got, err)
	}
}
