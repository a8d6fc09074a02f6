package query

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is a row of the tests: values by field.
type row map[string]string

// rows are the rows of the tests, numbered from 1.
var rows = []row{
	{"C": "0.1", "gamma": "0", "acc": "0.5", "note": "a", "state": "succeeded", "host": "ws1", "time": "90",
		"mem": "1024", "ended": "2026-03-14T10:00:00Z"},
	{"C": "0.10", "gamma": "1", "acc": "0.75", "note": "b", "state": "succeeded", "host": "ws2", "time": "7200",
		"mem": "1610612736", "ended": "2026-03-14T23:00:00Z"},
	{"C": "1", "gamma": "0", "acc": "nan", "note": "c/d", "state": "failed", "host": "lab/1", "exit": "137",
		"ended": "2026-03-15T00:00:00Z"},
	{"C": "1", "gamma": "1", "acc": "bad", "state": "running", "host": "ws10", "two words": "x"},
	{"C": "10", "gamma": "0.2", "note": "rbf", "state": "queued", "rbf": "3"},
}

var types = map[string]Type{"time": DurationType, "mem": SizeType, "ended": TimeType, "exit": NumberType,
	"state": TextType, "host": TextType}

// testFields are the fields of rows; only those with a type are facts.
var testFields = Fields[row](func(name string) (*Field[row], error) {
	var known []string
	for _, r := range rows {
		for n := range r {
			known = append(known, n)
		}
	}
	slices.Sort(known)
	if known = slices.Compact(known); !slices.Contains(known, name) {
		return nil, Unknown("column", name, known)
	}
	typ, fact := types[name]
	f := &Field[row]{Name: name, Type: typ, Fact: fact, Value: func(r row) Value {
		if typ == TextType || typ == TimeType {
			return TextValue(r[name])
		}
		return ValueOf(r[name])
	}}
	switch name {
	case "state":
		f.Word = func(word string) (func(row) bool, error) {
			over := map[string][]string{"done": {"succeeded", "failed"}, "failed": {"failed"},
				"succeeded": {"succeeded"}}[word]
			if over == nil {
				return nil, fmt.Errorf("state is never %q", word)
			}
			return func(r row) bool { return slices.Contains(over, r["state"]) }, nil
		}
	case "exit":
		f.Check = func(l Literal) error {
			if l.Value.Number > 255 {
				return errors.New("exit is at most 255")
			}
			return nil
		}
	case "note":
		f.NotNumber = "a"
	}
	return f, nil
})

func find(t *testing.T, parse func(string) (*Query, error), text string) (string, error) {
	t.Helper()
	q, err := parse(text)
	if err != nil {
		return "", err
	}
	match, err := Compile(q, testFields, func(word string) func(row) bool {
		return func(r row) bool { return strings.Contains(r["note"]+" "+r["host"], word) }
	})
	if err != nil {
		return "", err
	}
	var found []string
	for i, r := range rows {
		if match(r) {
			found = append(found, strconv.Itoa(i+1))
		}
	}
	return strings.Join(found, " "), nil
}

// TestQueryAndSearchFindTheSame checks that a query and a search with the same text find the same
// rows.
func TestQueryAndSearchFindTheSame(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"C=1", "3 4"}, {"C==1", "3 4"}, {"C!=1", "1 2 5"}, {"C<>1", "1 2 5"}, {"C<1", "1 2"}, {"C<=1",
			"1 2 3 4"}, {"C>1", "5"}, {"C>=1", "3 4 5"},
		{"[C] >= 1", "3 4 5"}, {"C=0.1", "1 2"}, {"C='0.10'", "2"}, {"C!='0.10'", "1 3 4 5"}, {`C=1e-1`,
			"1 2"}, {`C>"0.1"`, "2 3 4 5"},
		{"1 = 1", "1 2 3 4 5"}, {"1 > 2", ""}, {"10 = C", "5"}, {"1 <= C", "3 4 5"}, {"0.1 <= C < 10",
			"1 2 3 4"}, {"0.1 < C <= gamma", "4"},
		// fields on both sides, and arithmetic
		{"C = gamma", "4"}, {"gamma < C", "1 3 5"}, {"[C] = [gamma]", "4"}, {"C + 0.2 = 1.2", "3 4"}, {"C + 0.2 = 0.3",
			"1 2"}, {"gamma * 5 = 1", "5"},
		{"C - gamma = 1", "3"}, {"C * (gamma + 1) = 2", "4"}, {"(C + 1) * 2 = 4", "3 4"}, {"[C]*[gamma]>1",
			"5"}, {"[C]*2=20", "5"}, {"C / gamma = 50", "5"},
		{"C % 0.1 = 0", "1 2 3 4 5"}, {"-C = -10", "5"}, {"-(C + 1) = -11", "5"}, {"+C=+10", "5"}, {"acc * 2 = 1",
			"1"}, {"C = gamma + 1", "3"},
		{"1 / gamma = inf", "1 3"}, {"-5 % 2 = -1", "1 2 3 4 5"}, {"0.1 * 3 <= 0.3", "1 2 3 4 5"}, {"1 - 0.9 = 0.1",
			"1 2 3 4 5"}, {"0.1 + 0.1 < 0.2", ""},
		{"9007199254740992 = 9007199254740993", ""}, {"9007199254740992 < 9007199254740993",
			"1 2 3 4 5"}, {"9007199254740993 - C = 9007199254740992", "3 4"}, {"1 / 3 * 3 = 1", "1 2 3 4 5"},
		{"C < 10%", "1 2 3 4"}, {"C = 10%", "5"},
		// texts
		{"note=rbf", "4"}, {"note = 'rbf'", "5"}, {`note="rbf"`, "5"}, {"note=''", "4"}, {"note!=''",
			"1 2 3 5"}, {"C=rbf", ""}, {"rbf=3", "5"}, {"note >= c", "3 5"},
		{"note=*", "1 2 3 5"}, {"note=c*", "3"}, {"note=?", "1 2"}, {"host=ws[12]", "1 2"}, {"note='*'",
			""}, {"host!=w?[12]", "3 4 5"}, {"host=lab/1", "3"},
		{"note~'^[ab]$'", "1 2"}, {"note !~ [a-c]", "4"}, {"host~^ws1", "1 4"}, {`host~"\\d\\d"`,
			"4"}, {"[two words]=x", "4"}, {`"a" = note`, "1"},
		// facts, units, nan
		{"state=failed", "3"}, {"state!=done", "4 5"}, {"state=*ed", "1 2 3 5"}, {"exit=137", "3"}, {"exit=''",
			"1 2 4 5"}, {"exit!=137", "1 2 4 5"},
		{"time>2m", "2"}, {"time=90", "1"}, {"1m < time < 1h", "1"}, {"mem>=1.5G", "2"}, {"mem<1M",
			"1"}, {"ended>=2026-03-15", "3"}, {"ended<2026-03-14T12:00", "1"},
		{"ended=2026-03-14*", "1 2"}, {"acc=nan", "3"}, {"acc!=nan", "1 2 4 5"}, {"acc>0 or acc<=0", "1 2"},
		// logic
		{"C=1 and gamma=0", "3"}, {"C=1, gamma=0", "3"}, {"C=1&&gamma=0", "3"}, {"C=1 gamma=0",
			"3"}, {"C=1 AND gamma=0", "3"}, {"C=1,gamma=0", "3"},
		{"C=10 or gamma=1", "2 4 5"}, {"C=10||gamma=1", "2 4 5"}, {"C=10 or C=1 and gamma=1",
			"4 5"}, {"(C=10 or C=1) and gamma=1", "4"}, {"(C=10 or C=1) gamma=1", "4"},
		{"not C=1", "1 2 5"}, {"!C=1", "1 2 5"}, {"! C=1 and not not gamma=1", "2"}, {"not (C=1 or gamma=0)",
			"2 5"}, {"C=1 not gamma=0", "4"}, {"C=1 and(gamma=0)or(gamma=0.2)", "3 5"},
		{"é=1 or C=1", "character 1: there is no column"},
	} {
		t.Run(c.query, func(t *testing.T) {
			for name, parse := range map[string]func(string) (*Query, error){"query": Parse, "search": ParseSearch} {
				got, err := find(t, parse, c.query)
				if err != nil && strings.HasPrefix(err.Error(), c.want) && c.want != "" {
					continue
				}
				if err != nil || got != c.want {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
				}
			}
		})
	}
}

// TestOtherWordsAreSearchedFor checks that words that are not part of a comparison are searched
// for, but only in the search on the screen.
func TestOtherWordsAreSearchedFor(t *testing.T) {
	for _, c := range []struct{ search, want string }{
		{"ws", "1 2 4"}, {"ws not ws1", "2"}, {"a or b", "1 2 3 5"}, {"ws, C=1", "4"}, {"-ws", ""}, {"!ws",
			"3 5"}, {`"a w"`, "1"}, {`"a \"w"`, ""}, {"lab/1", "3"},
		{"http://x", ""}, {"--train=1", ""}, {"a:b=3", ""}, {"(ws or lab) C=1", "3 4"}, {"f(x)", ""}, {"(f(x) or lab)",
			"3"}, {"+", ""}, {"C * 2", ""}, {"C * 2 = 2", "3 4"},
		{`"C=1"`, ""}, {"x)", ""}, {"&", ""}, {"a,b", ""}, {"or1", ""},
	} {
		t.Run(c.search, func(t *testing.T) {
			if got, err := find(t, ParseSearch, c.search); err != nil || got != c.want {
				t.Errorf("search: got %q, %v; want %q", got, err, c.want)
			}
			if q, err := Parse(c.search); err == nil && c.search != "C * 2 = 2" {
				if _, err := Compile(q, testFields, nil); err == nil {
					t.Error("got no error from Parse, want one: words are searched for on the screen only")
				}
			}
		})
	}
	if _, err := find(t, ParseSearch, "x host:ws1"); err == nil ||
		!strings.Contains(err.Error(), "character 3: a comparison has no colon: write host=ws1") {
		t.Errorf("host:ws1: got %v, want an error that says what to write", err)
	}
	if q, err := ParseSearch("  "); q != nil || err != nil {
		t.Errorf("an empty search: got %v, %v; want nothing", q, err)
	}
}

// TestErrorsHavePositionsAndAdvice checks that every error has a position, describes what was
// expected, and suggests the nearest name.
func TestErrorsHavePositionsAndAdvice(t *testing.T) {
	for _, c := range []struct {
		query string
		pos   int
		want  string
	}{
		{"", 0, "a comparison is expected"}, {"C", 1, `after "C", not the end`}, {"C is 3", 2,
			`after "C", not "is"`}, {"C=", 2, "a name, a number, or a text is expected, not the end"},
		{"C=)", 2, `is expected, not ")"`}, {"=3", 0, `expected, not "="`}, {"(C=1", 4,
			"a ) is expected, not the end"}, {"C=1)", 3, "`and` or `or` is expected"},
		{"C=1 and", 7, "is expected, not the end"}, {"not", 3, "is expected, not the end"}, {"C='1", 2,
			"the quote is not closed"}, {"[C=1", 0, "the [ is not closed"}, {"C~'('", 2, "missing closing )"},
		{"C=1 & gamma=2", 4, `expected, not "&"`}, {"é=1 und gamma=2", 9, `after "und"`}, {strings.Repeat("(", 200) +
			"C=1", 101, "more than 100 levels deep"}, {strings.Repeat("not ", 200), 403, "more than 100 levels deep"},
		{strings.Repeat("x", 200_000), 0, "at most 100000"}, {"C=1 gama=2", 4,
			`there is no column "gama" (did you mean "gamma"?)`}, {"state=fail", 6, "state is never"},
		{"exit=x", 5, `exit is a number, and "x" is not`}, {"exit>256", 5, "at most 255"}, {"time>1x", 5,
			"time is a duration such as"}, {"mem>1x", 4, "mem is a size such as"},
		{"ended>1x", 6, "ended is a time such as"},
		{"C=[12", 2, "the [ is not closed"}, {"note=a[1", 5, "a ] is missing"}, {"C*gamma<1", 0,
			"write spaces around + - * / % to calculate"}, {"C +1 > 2", 2, "write spaces around"},
		{"note * 2 > 1", 0, `its value "a" is not a number`}, {"'a' + 1 > 1", 0,
			`the text "a" cannot be calculated with`}, {"host + 1 > 1", 0, "host is a text"},
		{"C + 1 > x", 8, `a number is expected, not "x"`},
		{"exit<2*C", 5, `and "2*C" is not; write spaces around`}, {"C + 1 > 2*C", 8, `not "2*C"; write spaces around`},
		{"(C > 1) + 1 > 1", 3, "a ) is expected"}, {"C and C > 1", 2, `after "C"`}, {"C > 1 and 2 ~ x", 10,
			"compares a field"}, {"2 < D", 4, `there is no column "D"`},
	} {
		t.Run(fmt.Sprintf("%.30s", c.query), func(t *testing.T) {
			_, err := find(t, Parse, c.query)
			var e *Error
			if !errors.As(err, &e) || e.Pos != c.pos || !strings.Contains(e.Message, c.want) {
				t.Errorf("got %#v, want position %d and %q", err, c.pos, c.want)
			}
		})
	}
	if _, err := find(t, Parse, "é=1"); err == nil || !strings.HasPrefix(err.Error(), "character 1: ") {
		t.Errorf("got %v, want a place in characters", err)
	}
}

// TestQueryIsAConjunction checks that a query is the conjunction of its conditions, and that Names
// returns the names in each.
func TestQueryIsAConjunction(t *testing.T) {
	for _, c := range []struct{ query, conditions, names, possible string }{
		{"C=1", "C=1: C", "C", "C"},
		{"C=gamma note=x", "C=gamma: C; note=x: note", "C note", "C gamma note x"},
		{" not C=1 ,(note=x or C=2)and host=y", "not C=1: C; (note=x or C=2): note C; host=y: host", "C note C host",
			"C note x C host y"},
		{"1 < C < gamma, (note=[rbf] or -acc > 0) and host~x",
			"1 < C < gamma: C; 1 < C < gamma: C; (note=[rbf] or -acc > 0): note rbf acc; host~x: host",
			"C C note rbf acc host", "C C gamma note rbf acc host"},
	} {
		t.Run(c.query, func(t *testing.T) {
			q, err := Parse(c.query)
			if err != nil {
				t.Fatal(err)
			}
			var conditions []string
			for _, part := range q.Conditions() {
				conditions = append(conditions, part.String()+": "+strings.Join(part.Names(false), " "))
			}
			for _, v := range [][2]string{{strings.Join(conditions, "; "), c.conditions},
				{strings.Join(q.Names(false), " "), c.names}, {strings.Join(q.Names(true), " "), c.possible}} {
				if v[0] != v[1] {
					t.Errorf("got %q, want %q", v[0], v[1])
				}
			}
		})
	}
}

// TestIncomparableValuesAreReported checks that < and > report values that they cannot compare.
func TestIncomparableValuesAreReported(t *testing.T) {
	for query, want := range map[string]string{"acc>0.6": "bad", "acc>=x": "0.5 0.75 nan", "acc=0.5": "",
		"acc>'x'": ""} {
		var told []string
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		match, err := Compile(q, Fields[row](func(name string) (*Field[row], error) {
			f, err := testFields(name)
			if err != nil {
				return nil, err
			}
			f.Mismatch = func(_ row, v Value) { told = append(told, v.String()) }
			return f, err
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			match(r)
		}
		if got := strings.Join(told, " "); got != want {
			t.Errorf("%s: told of %q, want %q", query, got, want)
		}
	}
}

// FuzzQuery checks that no text causes a panic, and that errors have a position and no control
// characters. A query and its negation partition the rows. A search finds the same rows as a query.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"C>=0.1 and state=succeeded", "not (a=1 or b!~'x y') , C<=-3", "[C]>0.5 && host=ws*",
		"acc=nan||note=''", "((", "C='", "é~[", "C=1=2",
		"1 < C * 2 <= gamma + 1", "-(C - 1) > 0", `"a \" b" = C`, "a:b --x=1 -y", "time>1h30m ended<2026-03-14",
		"! (C)*2>1 x", "\xff=1 (", "C\u00a0=\v1", "note=[a", "C=a,note=b"} {
		f.Add(s)
	}
	check := func(t *testing.T, text string, err error) {
		var e *Error
		if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) || strings.ContainsAny(err.Error(), "\x1b\x00\n") {
			t.Fatalf("%q: %#v", text, err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		search, err := find(t, func(s string) (*Query, error) {
			q, err := ParseSearch(s)
			if q == nil && err == nil {
				err = &Error{Message: "empty"}
			}
			return q, err
		}, text)
		searchErr := err
		if err != nil {
			check(t, text, err)
		}
		found, err := find(t, Parse, text)
		if err != nil {
			check(t, text, err)
			return
		}
		if (searchErr != nil || search != found) && !strings.Contains(text, "--") && !strings.Contains(text, ":") {
			t.Fatalf("%q finds %s, as a search %s %v", text, found, search, searchErr)
		}
		if len(text) > 1000 || strings.Count(text, "(")+strings.Count(text, "!")+strings.Count(strings.ToLower(text),
			"not")+strings.Count(text, "-")+strings.Count(text, "+") > maxDepth-2 {
			return
		}
		others, err := find(t, Parse, "not ("+text+")")
		if err != nil || len(strings.Fields(found))+len(strings.Fields(others)) != len(rows) {
			t.Fatalf("%q finds %q, its negation %q, %v", text, found, others, err)
		}
	})
}

// TestNumbersAreWrittenShort checks that the text of a number is as short as possible.
func TestNumbersAreWrittenShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.1: "0.1", -2.5: "-2.5", 1e14: "100000000000000",
		1e15: "1e+15", 1e-4: "0.0001", 1e-5: "1e-05", math.Inf(-1): "-inf"} {
		if got := NumberValue(v).String(); got != want {
			t.Errorf("text of %v: got %s, want %s", v, got, want)
		}
	}
}

// TestContainsIgnoresCase checks that Contains ignores case.
func TestContainsIgnoresCase(t *testing.T) {
	for _, c := range []struct {
		text, in string
		want     bool
	}{{"TRAIN", "./train", true}, {"STRASSE", "straße", false}, {"STRAße", "die Straße", true}, {"", "", true}, {"aab",
		"aaab", true}, {"x", "", false}} {
		t.Run(c.text, func(t *testing.T) {
			if got := Contains(c.text)(c.in); got != c.want {
				t.Errorf("%q contains %q: got %v, want %v", c.in, c.text, got, c.want)
			}
		})
	}
}

// TestParseNumber checks which texts are numbers.
func TestParseNumber(t *testing.T) {
	inf := math.Inf(1)
	for text, want := range map[string]float64{"0": 0, "-1.5e3": -1500, "+7": 7, ".5": 0.5, "5.": 5, "91.3%": 91.3,
		"inf": inf, "-Infinity": -inf, "+INF": inf, "007": 7} {
		t.Run(text, func(t *testing.T) {
			if v, ok := ParseNumber(text); !ok || v != want {
				t.Errorf("%s: %v %v", text, v, ok)
			}
		})
	}
	for _, text := range []string{"nan", "NaN", "-nan"} {
		t.Run(text, func(t *testing.T) {
			if v, ok := ParseNumber(text); (!ok || !math.IsNaN(v)) && text != "-nan" {
				t.Errorf("%s: %v %v", text, v, ok)
			}
		})
	}
	for _, text := range []string{"", "%", "0x10", "1_000", "1,5", "3.2s", "1e999", "none", "infinite", "- 1", "1 ",
		strings.Repeat("1", 500)} {
		t.Run(text, func(t *testing.T) {
			if v, ok := ParseNumber(text); ok {
				t.Errorf("%q is taken for the number %v", text, v)
			}
		})
	}
}
