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
		{"0.1,\u00a01", "U+00A0"}, {"“rbf”, “linear fit”", "U+201C"}, {"−1, 1", "U+2212"}, {"1,5 2,7", "1,5 may be one number or two"}, {"1 2,5", "2,5 may be"},
		{"'“rbf”'", ""}, {"1,2,3 4,5,6", ""}, {"1,5", ""}, {"1, 5, 2", ""}, {"0.1,1 10", ""}, {"1,5, 2,7", ""}, {"1 2 3", ""}, {"a,b c,d", ""},
	} {
		_, err := Config{}.Parse(context.Background(), strings.NewReader("echo [a]\n[a] "+c.values+"\n"), "t.txt")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.values, err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte("\ufeffone\r\ntwo\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readValueLines(file, nil); err != nil || strings.Join(got, "|") != "one|two" {
		t.Errorf("a list with a byte order mark: got %q, %v", got, err)
	}
}
