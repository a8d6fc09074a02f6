package board

import (
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Help is what a person can type as a filter.
const Help = `A filter is words; a job must fit all of them.

text              name, command or parameters contain it, in capitals or not
"two words"       quotes hold blanks together
C=0.1  C>=1       the parameter C; also != < > <=; numbers compare as numbers,
                  * ? [a-z] stand for other characters with = and !=;
                  C="0.10" is exactly that text
state:fail        also run, away, handed, retry, timeout, queue, waits, ok, cancel,
                  skip, ending, the words of the journal (succeeded, timed_out …), and
                  open, done, bad (failed, timed out or skipped); several with a comma
host:ws01         where it runs or ran; * and ? as above
queue:x  tag:gpu  its queue, a tag that it asks for; * and ? as above
exit:137          how it ended: a code, a signal such as SIGKILL, !0 for all but 0
try:2  try:>1     which try it is at; also try:retried
prio:5  prio:<0   its priority
id:3-9,12         numbers
straggler         it runs far longer than others of its queue
-word  !word      jobs that do not fit the word`

// match says whether a job fits.
type match func(l *list, id uint32, r *row) bool

// filter is a parsed filter. nil: every job fits.
type filter struct {
	words []word
}

type word struct {
	fits match
	not  bool
}

func (f *filter) fits(l *list, id uint32, r *row) bool {
	for i := range f.words {
		if w := &f.words[i]; w.fits(l, id, r) == w.not {
			return false
		}
	}
	return true
}

// CheckFilter says what is wrong with a filter and what is possible; nil if nothing is.
func CheckFilter(s string) error {
	_, err := parseFilter(s)
	return err
}

// maxFilter bounds the text of a filter, in bytes.
const maxFilter = 4096

func parseFilter(s string) (*filter, error) {
	if len(s) > maxFilter {
		return nil, fmt.Errorf("a filter has at most %d characters", maxFilter)
	}
	tokens, err := split(s)
	if err != nil || len(tokens) == 0 {
		return nil, err
	}
	f := new(filter)
	for _, t := range tokens {
		w, err := t.word()
		if err != nil {
			return nil, err
		}
		f.words = append(f.words, w)
	}
	return f, nil
}

// token is a word as typed, its quotes taken off. What was quoted from its beginning
// is text, whatever it looks like; a value that was quoted from its beginning is meant
// to the letter.
type token struct {
	text   string
	not    bool
	quoted bool
	letter bool
}

func split(s string) ([]token, error) {
	var list []token
	for {
		s = strings.TrimLeft(s, " \t\n")
		if s == "" {
			return list, nil
		}
		t := token{}
		if len(s) > 1 && (s[0] == '-' || s[0] == '!') && s[1] != ' ' {
			t.not, s = true, s[1:]
		}
		t.quoted = s[0] == '"'
		var b strings.Builder
		inside := false
		i := 0
		for ; i < len(s) && (inside || !strings.ContainsRune(" \t\n", rune(s[i]))); i++ {
			switch {
			case s[i] == '"':
				inside = !inside
				t.letter = t.letter || i > 0 && strings.IndexByte("=<>", s[i-1]) >= 0
			case inside && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
				i++
				b.WriteByte(s[i])
			default:
				b.WriteByte(s[i])
			}
		}
		if inside {
			return nil, fmt.Errorf("a quote is open: %s", shorten(s))
		}
		t.text, s = b.String(), s[i:]
		if t.text == "" && !t.quoted {
			continue
		}
		list = append(list, t)
	}
}

// shorten quotes a piece of what was typed.
func shorten(s string) string { return strconv.Quote(jobs.Clean(s, 40)) }

func (t token) word() (word, error) {
	if t.quoted {
		return word{textMatch(t.text), t.not}, nil
	}
	if t.text == "straggler" {
		return word{func(_ *list, _ uint32, r *row) bool { return r.flags&straggler != 0 }, t.not}, nil
	}
	if key, value, ok := strings.Cut(t.text, ":"); ok {
		if make := keys[key]; make != nil {
			if value == "" {
				return word{}, fmt.Errorf("%s: wants a value, such as %s", key, examples[key])
			}
			m, err := make(value)
			if err != nil {
				return word{}, err
			}
			return word{m, t.not}, nil
		}
		if near := jobs.Nearest(key, keyNames); near != "" && !strings.ContainsAny(t.text, "/\\=<>") {
			return word{}, fmt.Errorf("there is no filter %s:, did you mean %s:? Quotes make it text", jobs.Clean(key, 40), near)
		}
	}
	if name, op, value, ok := comparison(t.text); ok {
		m, err := paramMatch(name, op, value, t.letter)
		return word{m, t.not}, err
	}
	return word{textMatch(t.text), t.not}, nil
}
