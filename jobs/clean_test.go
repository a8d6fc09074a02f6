package jobs

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"plain text", 0, "plain text"},
		{"", 5, ""},
		{"12345", 5, "12345"},
		{"123456", 5, "1234…"},
		{"äöüßé€", 6, "äöüßé€"},
		{"äöüßé€x", 6, "äöüßé…"},
		{"a\nb\tc\r\x00\x7f", 0, "a␊b c␍␀␡"},
		{"\x1b[31mred\x1b]0;title\x07", 0, "␛[31mred␛]0;title␇"},
		{"c1 \u009b31m \u0085", 0, "c1 �31m �"},
		{"raw \x9b31m \xff", 0, "raw �31m �"},
		{"rtl \u202eevil\u2066\u200b\u2028\ufeff", 0, "rtl �evil����"},
		{"nbsp\u00a0wide\u3000", 0, "nbsp wide "},
		{"日本語 ok", 4, "日本語…"},
		{"e\u0301" + strings.Repeat("\u0335", 9), 0, "e\u0301\u0335\u0335\u0335������"},
		{"\u0301x", 0, "�x"},
		{"x", 1, "x"},
		{"xy", 1, "…"},
	} {
		if got := Clean(c.in, c.limit); got != c.want {
			t.Errorf("Clean(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// No text of a job or a host may move the cursor, change colours or reorder a line.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\n日本", 4)
	f.Add(strings.Repeat("\u0301", 20)+"\u009b", 0)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		got := Clean(in, limit)
		n := 0
		for _, r := range got {
			n++
			if !unicode.IsPrint(r) {
				t.Fatalf("%U is left in %q", r, got)
			}
		}
		if !utf8.ValidString(got) || limit > 0 && n > limit {
			t.Fatalf("%d runes of %d: %q", n, limit, got)
		}
		if again := Clean(got, limit); limit > 0 && again != got || again != Clean(again, 0) {
			t.Fatalf("not stable: %q %q", got, again)
		}
		if limit <= 0 && utf8.RuneCountInString(in) != n {
			t.Fatalf("%q lost or gained runes: %q", in, got)
		}
	})
}
