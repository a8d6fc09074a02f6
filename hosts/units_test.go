package hosts

import (
	"strings"
	"testing"
	"time"
)

func TestParseQuiet(t *testing.T) {
	for s, want := range map[string]Quiet{
		"22:00-06:00":   {22 * time.Hour, 6 * time.Hour},
		"8:30 - 17:45":  {8*time.Hour + 30*time.Minute, 17*time.Hour + 45*time.Minute},
		"00:00-24:00":   {0, 24 * time.Hour},
		"23:59 - 00:00": {23*time.Hour + 59*time.Minute, 0},
	} {
		if got, err := parseQuiet(s); err != nil || got != want {
			t.Errorf("parseQuiet(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "22-06", "22:00", "25:00-06:00", "22:60-06:00", "22:00-22:00", "24:01-01:00", "24:00-06:00", "-1:00-02:00", "22:0-06:00"} {
		if got, err := parseQuiet(s); err == nil {
			t.Errorf("parseQuiet(%q) = %v; want an error", s, got)
		}
	}
}

// A command link is split as a shell would split it; what only a shell could do is refused.
func TestSplitWords(t *testing.T) {
	for s, want := range map[string]string{
		`docker exec -i web`:     `docker|exec|-i|web`,
		`  a   b	c `:             `a|b|c`,
		`a 'b c' "d e"`:          `a|b c|d e`,
		`a b\ c`:                 `a|b c`,
		`a "x\"y\\z\n" 'q\'`:     `a|x"y\z\n|q\`,
		`a '' ""`:                `a||`,
		`sh -c 'cd x && exec y'`: `sh|-c|cd x && exec y`,
		`a"b"'c'd`:               `abcd`,
		``:                       ``,
	} {
		if got, err := splitWords(s); err != nil || strings.Join(got, "|") != want {
			t.Errorf("splitWords(%q) = %q, %v; want %s", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		`a 'b`: "not closed", `a "b`: "not closed", `a\`: "backslash",
		`a | b`: "no shell", `a > b`: "no shell", `a $HOME`: "no shell", `a; b`: "no shell",
	} {
		if got, err := splitWords(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("splitWords(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
}
