package runview

import (
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/sheet"
)

// Help is what a person can type as a filter.
const Help = `A filter is comparisons, as --where has them, and words; a job must fit all of them.

text              name, command or parameters contain it, in capitals or not
"two words"       quotes hold blanks together
C=0.1  mem>1.5G   a parameter, or a column as the list shows it, in capitals or not:
                  id state host try time progress name parameters queue prio cpu
                  mem; also command exit signal failures. Also != < <= >=; numbers
                  compare as numbers, * and ? stand for other characters with =
                  and !=; ~ and !~ are regular expressions; C="0.10" is exactly
                  that text
or  not  ( )      as in: state=failed (host=ws1 or host=ws2)
state:fail        also run, away, handed, retry, timeout, queue, waits, ok, cancel,
                  skip, ending, the words of the journal (succeeded, timed_out …), and
                  open, done, bad (failed, timed out or skipped); several with a comma
host:ws01         where it runs or ran; * ? [a-z] stand for other characters
queue:x  tag:gpu  its queue, a tag that it asks for; * ? [a-z] as above
exit:137          how it ended: a code, a signal such as SIGKILL, !0 for all but 0
try:2  try:>1     which try it is at; also try:retried
prio:5  prio:<0   its priority
id:3-9,12         numbers
straggler         it runs far longer than others of its queue
-word  !word      jobs that do not fit the word`

// match says whether a job fits.
type match func(l *list, id uint32, r *row) bool

// filter is a filter over the rows of a list. nil: every job fits.
type filter struct {
	fit func(candidate) bool
}

// candidate is a row that a filter is asked of.
type candidate struct {
	l  *list
	id uint32
	r  *row
}

func (f *filter) fits(l *list, id uint32, r *row) bool { return f.fit(candidate{l, id, r}) }

// CheckFilter says what is wrong with a filter, whatever the parameters are called; nil
// if nothing is.
func CheckFilter(s string) error {
	f, err := parseSearch(s)
	if err == nil && f != nil {
		_, err = sheet.Compile(f, sheet.Rows[candidate]{Word: wordOfList, Cells: func(name string) (sheet.Cells[candidate], error) {
			return sheet.Cells[candidate]{Column: sheet.Column{Name: name, Role: sheet.Param}, Value: paramOf(name)}, nil
		}})
	}
	return err
}

// maxFilter bounds the text of a filter, in bytes.
const maxFilter = 4096

func parseSearch(s string) (*sheet.Filter, error) {
	if len(s) > maxFilter {
		return nil, fmt.Errorf("a filter has at most %d characters", maxFilter)
	}
	return sheet.ParseSearch(s)
}

// parseFilter reads a filter over the list of jobs, which have parameters of these names.
func parseFilter(s string, known vocabulary) (*filter, error) {
	f, err := parseSearch(s)
	if err != nil || f == nil {
		return nil, err
	}
	return known.compile(f)
}

// compile makes a filter over the list of jobs.
func (v vocabulary) compile(f *sheet.Filter) (*filter, error) {
	fit, err := sheet.Compile(f, sheet.Rows[candidate]{Word: wordOfList, Cells: v.cells})
	if err != nil {
		return nil, err
	}
	return &filter{fit}, nil
}

// shorten quotes a piece of what was typed.
func shorten(s string) string { return strconv.Quote(jobs.Clean(s, 40)) }

func wordOfList(w sheet.Word) (func(candidate) bool, error) {
	m, err := wordMatch(w)
	if err != nil {
		return nil, err
	}
	return func(c candidate) bool { return m(c.l, c.id, c.r) }, nil
}

// wordMatch finds what a word means: state:bad, straggler, or a text.
func wordMatch(w sheet.Word) (match, error) {
	if w.Quoted {
		return textMatch(w.Text), nil
	}
	if w.Text == "straggler" {
		return func(_ *list, _ uint32, r *row) bool { return r.flags&straggler != 0 }, nil
	}
	if key, value, ok := strings.Cut(w.Text, ":"); ok {
		if make := keys[strings.ToLower(key)]; make != nil {
			if key = strings.ToLower(key); value == "" {
				return nil, fmt.Errorf("%s: wants a value, such as %s", key, examples[key])
			}
			return make(value)
		}
		if near := jobs.Nearest(key, keyNames); near != "" && !strings.ContainsAny(w.Text, "/\\=<>") {
			return nil, fmt.Errorf("there is no filter %s:, did you mean %s:? Quotes make it text", jobs.Clean(key, 40), near)
		}
	}
	return textMatch(w.Text), nil
}
