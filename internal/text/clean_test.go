package text

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestControlCharactersAreReplaced checks that no text can control the terminal, hide itself, or
// exceed its limit.
func TestControlCharactersAreReplaced(t *testing.T) {
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
		{"👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍🚀 ❤️‍🔥", 0, "👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍🚀 ❤️‍🔥"},
		{"☺️ ☺︎ 1️⃣ #️⃣ 葛\U000e0100", 0, "☺️ ☺︎ 1️⃣ #️⃣ 葛\U000e0100"},
		{"a\u200db 👩\u200d 👩\u200dx \u200d👩", 0, "a�b 👩� 👩�x �👩"},
		{"a\ufe0fb 1\ufe0f ☺\ufe0f\ufe0f 葛\ufe0f \U000e0100", 0, "a�b 1� ☺\ufe0f� 葛� �"},
		{"👩\u200d\u202e👩 👩\u202e\u200d👩 👩\u200d\u200d👩", 0, "👩��👩 👩��👩 👩��👩"},
		{strings.Repeat("👩\u200d", 9) + "x", 0, strings.Repeat("👩\u200d", 6) + strings.Repeat("👩�", 1) +
			strings.Repeat("👩\u200d", 1) + "👩�x"},
		{"0\u200d\ufe0f\u20e3 ☺\u200d\ufe0f", 0, "0��\u20e3 ☺��"},
		{"cgj a\u034fb filler \u3164\u115f\uffa0 tag \U000e0061", 0, "cgj a�b filler ��� tag �"},
		{"👩\u200d💻x", 2, "👩…"},
		{"x", 1, "x"},
		{"xy", 1, "…"},
	} {
		t.Run(c.in, func(t *testing.T) {
			if got := Clean(c.in, c.limit); got != c.want {
				t.Errorf("Clean(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
			}
		})
	}
}

// FuzzEscapeJSON checks that escaped JSON has the values of the original, and nothing that Clean
// would replace: no text of a job or a host in it can change a terminal.
func FuzzEscapeJSON(f *testing.F) {
	f.Add("a\x1b[2J\u009b31m\u0085\x7f \u202eevil\u2066\u2028\u200b\ufeff\xff \u00a0\u3164 \U000e0061")
	f.Add("\u0301" + strings.Repeat("e"+strings.Repeat("\u0301", 9), 2) +
		"👩\u200d💻 ☺\ufe0f\u0301 葛\U000e0100 \\u009b \"\u0301")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := json.Marshal(map[string]string{"k": s})
		if err != nil {
			t.Fatal(err)
		}
		got := EscapeJSON(line)
		if clean := Clean(string(got), 0); clean != string(got) {
			t.Errorf("of %q it leaves %q", line, got)
		}
		var m map[string]string
		if err := json.Unmarshal(got, &m); err != nil || m["k"] != string([]rune(s)) {
			t.Errorf("%q became %q: %v", s, got, err)
		}
		if again := EscapeJSON(append(got, '\n')); string(again) != string(got)+"\n" {
			t.Errorf("%q became %q", got, again)
		}
	})
}

// FuzzClean checks that no text of a job or a host can move the cursor, change colors, or reorder a
// line.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\n日本", 4)
	f.Add(strings.Repeat("\u0301", 20)+"\u009b", 0)
	f.Add("👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 a\u200db 1\ufe0f\u20e3", 5)
	f.Add("\xe2\u200d🔥\u200d0\ufe0f\u20e3\x9a", 7)
	f.Add("\x8d🔥\u200d0\u200d\ufe0f\u20e3", 51)
	f.Add("00000\ufe0e\u20e30", 7)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		got := Clean(in, limit)
		n := 0
		all := []rune(got)
		for i, r := range all {
			n++
			hidden := unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
			switch {
			case r == zeroWidthJoiner:
				if i == 0 || i == len(all)-1 || !unicode.Is(pictographs, all[i+1]) || all[i-1] < 0xa9 {
					t.Fatalf("a joiner that joins no emoji is left in %q", got)
				}
			case unicode.Is(unicode.Variation_Selector, r):
				if i == 0 || unicode.In(all[i-1], unicode.Variation_Selector, unicode.Cf) {
					t.Fatalf("%U that selects nothing is left in %q", r, got)
				}
			case hidden || !unicode.IsPrint(r):
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
