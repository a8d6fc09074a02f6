package metrics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Metric describes one metric: its name, the file that contains it, and how it is found there.
// Parse and New make one. It is immutable and safe for concurrent use.
type Metric struct {
	Name string
	// File is the file that the job wrote, relative to the job's working directory. It may contain
	// {id} and [PARAMETER]; see nameFor. "" is the standard output.
	File string

	how  string         // the second argument of New
	key  string         // name=value: the name
	path []string       // json: the path through the object
	expr *regexp.Regexp // re
}

const (
	maxName = 100  // length of a column's name, in bytes
	maxHow  = 2000 // length of the rest, in bytes
	maxPath = 50   // number of steps of a path through JSON
)

// Parse parses NAME or NAME=HOW, as in `--result`. New explains HOW.
func Parse(text string) (*Metric, error) {
	name, how, given := strings.Cut(text, "=")
	if given && strings.TrimSpace(how) == "" {
		return nil, fmt.Errorf("the result column %s: nothing follows the =; "+
			"NAME alone is the last NAME=VALUE of the output", quoted(name))
	}
	return New(name, how)
}

// New makes a metric from its name and how it is found:
//
//	""                 the last `name=value` or `name: value`
//	key:OTHER          the same with another name: `key:test accuracy`
//	json:PATH          a member of the last line that is a JSON object: json:test.accuracy, json:loss.0
//	re:EXPR            the last match of a regular expression (RE2) with one group, which is the value
//	file:PATH          in a file that the job wrote; NAME of it
//	file:PATH:HOW      the same and how: json:…, re:…, key:…, or the path through JSON alone
func New(name, how string) (*Metric, error) {
	c := &Metric{Name: strings.TrimSpace(name), how: strings.TrimSpace(how)}
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	err := c.parse(c.how)
	if len(c.how) > maxHow {
		err = fmt.Errorf("it has %d bytes; at most %d are allowed", len(c.how), maxHow)
	}
	if err != nil {
		return nil, fmt.Errorf("the result column %s: %w", c.Name, err)
	}
	return c, nil
}

// String returns the form that Parse parses.
func (c *Metric) String() string {
	if c.how == "" {
		return c.Name
	}
	return c.Name + "=" + c.how
}

func checkName(name string) error {
	const what = "the name of a result column"
	switch {
	case name == "":
		return fmt.Errorf("%s is missing: NAME, or NAME=json:PATH, NAME=re:EXPR, NAME=file:PATH:HOW", what)
	case len(name) > maxName:
		return fmt.Errorf("%s has %d bytes; at most %d", what, len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s is not valid UTF-8: %q", what, name)
	}
	for i, r := range name {
		switch {
		case unicode.IsLetter(r) || r == '_':
		case i > 0 && (unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-./@", r)):
		default:
			return fmt.Errorf("%s is made of letters, digits and _ - . / @ and begins with a letter, not %q; "+
				"NAME=key:OTHER finds another name", what, text.Clean(name, 40))
		}
	}
	return nil
}

// kinds are the words before the colon, in the order in which they are explained.
var kinds = []string{"json", "re", "key", "file"}

func (c *Metric) parse(how string) error {
	kind, rest, _ := strings.Cut(how, ":")
	switch {
	case how == "":
		c.key = c.Name
		return nil
	case kind == "file":
		return c.parseFile(rest)
	case kind == "key":
		return c.parseKey(rest)
	case kind == "json":
		return c.parseJSON(rest)
	case kind == "re":
		return c.parseRE(rest)
	}
	for _, k := range kinds {
		if strings.EqualFold(strings.TrimSpace(kind), k) {
			return fmt.Errorf("write %s: with small letters and no spaces", k)
		}
	}
	return fmt.Errorf("write json:, re:, key:, or file:, not %s", quoted(how))
}

func (c *Metric) parseFile(rest string) error {
	path, how, given := strings.Cut(rest, ":")
	switch {
	case strings.TrimSpace(path) == "":
		return fmt.Errorf("file: names no file; file:metrics.json:accuracy does")
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("the name of the file holds a NUL byte")
	case given && how == "":
		return fmt.Errorf("nothing follows the second colon of %s", quoted(c.how))
	}
	c.File = path
	if !given {
		if strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl") {
			return c.parseJSON(c.Name)
		}
		return c.parse("")
	}
	switch kind, _, more := strings.Cut(how, ":"); {
	case more && kind == "file":
		return fmt.Errorf("a file in a file")
	case more:
		return c.parse(how)
	}
	return c.parseJSON(how)
}

func (c *Metric) parseKey(rest string) error {
	c.key = strings.TrimSpace(rest)
	if c.key == "" {
		return fmt.Errorf("key: names nothing; key:test accuracy does")
	}
	if strings.ContainsAny(c.key, "=:\n\r\x00") {
		return fmt.Errorf("the name in key:%s may hold no =, no : and no line break (re: may)", quoted(c.key))
	}
	return nil
}

func (c *Metric) parseJSON(rest string) error {
	path := strings.Split(rest, ".")
	if len(path) > maxPath {
		return fmt.Errorf("json: has a path of %d steps; at most %d", len(path), maxPath)
	}
	for _, step := range path {
		if step == "" {
			return fmt.Errorf("json:%s: a path is names with a dot between, such as json:test.accuracy", quoted(rest))
		}
	}
	c.path = path
	return nil
}

func (c *Metric) parseRE(rest string) error {
	expr, err := regexp.Compile(rest)
	if err != nil {
		return fmt.Errorf("re: %s", text.Clean(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 100))
	}
	switch n := expr.NumSubexp(); {
	case rest == "":
		return fmt.Errorf("re: is empty; re:Accuracy: ([0-9.]+) has a group for the value")
	case n == 0:
		return fmt.Errorf("re:%s has no group; put ( ) around the value", quoted(rest))
	case n > 1:
		return fmt.Errorf("re:%s has %d groups; one is the value, make the others (?: )", quoted(rest), n)
	}
	c.expr = expr
	return nil
}

// number matches a number within a text.
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
})

// Suggest returns a metric with a regular expression, in the form that Parse parses, for a value
// that the metric found and that holds exactly one number among other text. It returns "" if there
// is no such metric, or if it would not find the number.
func (c *Metric) Suggest(text string) string {
	key := c.key
	if len(c.path) == 1 {
		key = c.path[0]
	}
	if all := number().FindAllStringIndex(text, 2); key != "" && len(all) == 1 &&
		!strings.ContainsAny(text, "'\"\n\r") {
		expr := regexp.QuoteMeta(key) + `\W*?` + regexp.QuoteMeta(text[:all[0][0]]) + "(" + number().String() + ")"
		how := "re:" + expr
		if c.File != "" {
			how = "file:" + c.File + ":" + how
		}
		found := text[all[0][0]:all[0][1]]
		s, err := New(c.Name, how)
		if err == nil && !strings.Contains(how, "'") && s.findRE([]byte(key+"="+text)) == found &&
			s.findRE([]byte(`"`+key+`": "`+text+`"`)) == found {
			return s.String()
		}
	}
	return ""
}

func quoted(s string) string { return fmt.Sprintf("%q", text.Clean(s, 60)) }

// nameFor returns the name of a metric's file for one job. {id} is replaced by the job's number,
// {attempt} by the attempt (17.2), {run} by the run directory, and [C] by the value of the
// parameter C. Names of unknown parameters stay as they are.
func nameFor(file string, id jobs.AttemptID, runDir string, params []jobs.Param) string {
	pairs := []string{"{id}", strconv.Itoa(int(id.Job)), "{attempt}", id.String(), "{run}", runDir}
	for _, p := range params {
		pairs = append(pairs, "["+p.Name+"]", p.Value)
	}
	return strings.NewReplacer(pairs...).Replace(file)
}
