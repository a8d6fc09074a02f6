package metrics

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
)

func parse(t *testing.T, text string) *Metric {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// findCase is a column, an output or the end of one, and the value that is found there.
type findCase struct{ column, text, want string }

// checkFinds checks that each column has its value. whole means that the texts are whole outputs.
func checkFinds(t *testing.T, whole bool, cases []findCase) {
	t.Helper()
	for _, c := range cases {
		if got := parse(t, c.column).Find(NewText([]byte(c.text), whole)); got != c.want {
			t.Errorf("%s in %q: got %q, want %q", c.column, c.text, got, c.want)
		}
	}
}

// TestMetricsAreFoundInOutputs checks metrics by name=value, by a regular expression, and from
// JSON.
func TestMetricsAreFoundInOutputs(t *testing.T) {
	checkFinds(t, true, []findCase{
		{"acc", "acc=0.5\nacc=0.9\n", "0.9"},
		{"acc", "acc: 0.5\nno newline at the end acc = 0.9", "0.9"},
		{"acc", "epoch 38 loss=0.2141, acc=0.913, time=3s\n", "0.913"},
		{"loss", "epoch 38 loss=0.2141, acc=0.913\n", "0.2141"},
		{"acc", "val_acc=0.7\ntrain.acc=0.8\nx/acc: 1\nbestacc=3\n", ""},
		{"acc", "acc=0.5 accuracy=0.9\n", "0.5"},
		{"train/acc", "train/acc: 0.8\nacc: 0.1", "0.8"},
		{"acc", "the end: acc: 0.913.\n", "0.913"},
		{"acc", "(acc=0.913)\n", "0.913"},
		{"acc", "acc=f(0.9)\n", "f(0.9)"},
		{"acc", "{'acc': 0.9}\n", "0.9"},
		{"acc", `{"acc": 0.9, "n": 1}`, "0.9"},
		{"name", `name = "a b, c" x=1`, "a b, c"},
		{"name", `name = 'not closed x`, "'not"},
		{"acc", "acc=\nacc =\t\n", ""},
		{"acc", "acc=0.4\nacc=\n", "0.4"},
		{"acc", "if acc == 0.5: stop\n", ""},
		{"acc", "acc := 0.5\n", "0.5"},
		{"acc", "acc=nan", "nan"},
		{"acc", "acc=-inf", "-inf"},
		{"acc", "acc=91.3%\r\n", "91.3%"},
		{"acc", "1%\racc=0.1 2%\racc=0.2", "0.2"}, // a progress line
		{"acc", "acc=1\x1b[0m", "1"},
		{"acc", "\x1b[1;31macc\x1b[0m\x1b[K: \x1b[32m0.5\x1b[0m\n", "0.5"}, // colors
		// An escape sequence that is not a color is kept.
		{"acc", "acc=\"\x1b[2J0.5\"\n", "\x1b[2J0.5"},
		{"acc", "\xef\xbb\xbfacc=0.5\r\n", "0.5"},
		{"a=re:^acc=(.*)$", "\xef\xbb\xbfacc=0.5\r\n", "0.5"},
		{"a=json:acc", "\xef\xbb\xbf{\"acc\":0.5}\r\n", "0.5"},
		{"a=json:acc", "1%\r100%\r{\"acc\":0.5}\rdone\n", "0.5"},
		{"a=re:^acc=([0-9.]+)$", "acc=0.1\racc=0.2\rdone\n", "0.2"},
		{"acc", "acc=1,234.5 in all\n", "1,234.5"}, // not 1
		{"acc", "acc=0,5\n", "0,5"},                // not 0
		{"acc", "acc=1,x=2 acc=3, 4\n", "3"},
		{"losses", "losses=[1,2]\n", "[1,2]"},
		{"losses", "losses=[1, 2], acc=3\n", "[1, 2]"},
		{"acc", "acc=np.float64(0.93), loss=1\n", "np.float64(0.93)"},
		{"acc", "{'acc': np.float64(0.93), 'n': 1}\n", "np.float64(0.93)"},
		{"acc", "acc: tensor(0.9300, device='cuda:0', grad_fn=<MeanBackward0>) n=1\n",
			"tensor(0.9300, device='cuda:0', grad_fn=<MeanBackward0>)"},
		{"acc", "acc=f(0.9 of 3, not closed\n", "f(0.9"},
		{"t", "t=0.93s, x=1\n", "0.93s"},
		{"t", "(t: 3 ms)\n", "3 ms"},
		{"t", "it took t=3 sec.\n", "3 sec"},
		{"t", "t=3 s=4\n", "3"},
		{"t", "t=3  s\n", "3"},
		{"t", "t=3 in all\n", "3"},
		{"zé", "Zzé=1 zé=2", "2"},
		{"a=key:test accuracy", "test accuracy: 0.7", "0.7"},
		{"a=json:accuracy", "{\"accuracy\":0.1}\n{\"accuracy\":0.90}\ndone\n", "0.90"},
		{"a=json:accuracy", "{\"accuracy\":0.1}\n{\"done\":true}\n", "0.1"},
		{"a=json:accuracy", "{\"accuracy\":0.1}\n{\"accuracy\":0.2", "0.1"},
		{"a=json:test.acc", `{"test":{"acc":1e3}}`, "1e3"},
		{"a=json:test.acc", `{"test.acc":5}`, "5"},
		{"a=json:loss.1", `{"loss":[1,2,3]}`, "2"},
		{"a=json:loss.-1", `{"loss":[1,2,3]}`, "3"},
		{"a=json:loss.7", `{"loss":[1,2,3]}`, ""},
		{"a=json:loss.x", `{"loss":[1,2,3]}`, ""},
		{"a=json:x", `{"x":null}`, ""},
		{"a=json:x", `{"x":true}`, "true"},
		{"a=json:x", `{"x":"a \" b"}`, `a " b`},
		{"a=json:x", `{"x":{"y":[1,2]}}`, `{"y":[1,2]}`},
		{"a=json:x", `{"x":NaN,"y":[-Infinity,"NaN"]}`, "NaN"},
		{"a=json:y.0", `{"x":NaN,"y":[-Infinity,"NaN"]}`, "-Infinity"},
		{"a=json:x", `{"x":"N\"aN NaN","y":NaN}`, `N"aN NaN`},
		{"a=json:x", `{"x":12345678901234567890}`, "12345678901234567890"},
		{"a=json:x", `{"x":1} {"x":2}`, ""}, // not one object
		{"a=json:x", "[1]\n7\n", ""},
		{"a=re:Accuracy: ([0-9.]+)", "Accuracy: 0.1 Accuracy: 0.2\nAccuracy: x\n", "0.2"},
		{"a=re:^took ([0-9]+)(?:s|m)$", "took 5s\nit took 7s\ntook 6m\r\n", "6"},
		{"a=re:x=([0-9]*)", "x=4\nx=\n", "4"},
		{"a=re:x(?:=([0-9]+))?", "x=4\nx\n", "4"},
		{"a=re:(?s)a(.*)b", "a\nb\n", ""}, // never over lines
		{"a=re:x=(.*)", "x=  padded \n", "padded"},
		// In a file.
		{"acc=file:m.json", "{\n \"acc\": 0.5,\n \"log\": [\n{\"acc\": 7}\n]\n}\n", "0.5"},
		{"acc=file:m.json:test.accuracy", "{\"test\":\n{\"accuracy\":1}}", "1"},
		{"acc=file:m.json:0.a", "[\n{\"a\":4}\n]", "4"},
		{"acc=file:m.jsonl", "{\"acc\":1}\n{\"acc\":2}\n", "2"},
		{"acc=file:log.txt", "acc=3\n", "3"},
		{"acc=file:log.txt:key:test acc", "test acc=3\n", "3"},
		{"acc=file:log.txt:re:a: (.)", "a: 4\n", "4"},
		{"acc=file:log.txt:json:a.b", "{\"a\":{\"b\":9}}\n", "9"},
	})
}

// TestFindInTheEndOfAnOutput checks that the first line of the end of an output is treated as an
// incomplete line. It may be the end of a line of megabytes, so only whole words are found in it.
func TestFindInTheEndOfAnOutput(t *testing.T) {
	checkFinds(t, false, []findCase{
		{"acc", "acc=0.5\nx\n", ""},
		{"acc", "acc=0.5", ""},
		{"acc", "xx acc=0.5", "0.5"},
		{"acc", "1%\racc=0.5\n", "0.5"},
		{"a=key:test acc", "test acc=0.5", ""},
		{"a=re:acc=(.*)", "xx acc=0.5", ""},
		{"a=re:acc=(.*)", "xx\racc=0.5", "0.5"},
		{"acc", "test_\nacc=0.5", "0.5"},
		{"a=json:x", "{\"x\":1}\n", ""},
		{"a=re:(.)", "a\nb", "b"},
		{"m=file:m.json:x", "\n{\"x\":1}\n", ""}, // part of a document, not a line
		{"m=file:m.jsonl:x", "\n{\"x\":1}\n", "1"},
	})
}

// TestTheEndIsEnough checks that reading an output in two parts yields the same as reading it at
// once. Columns are first looked for in the end of an output.
func TestTheEndIsEnough(t *testing.T) {
	text := "acc=1\nx y\nacc=2\n{\"acc\": 3}\nlong line with acc=4 and more\ntail\n"
	for _, how := range []string{"acc", "acc=json:acc", "acc=re:acc=([0-9])"} {
		t.Run(how, func(t *testing.T) {
			c := parse(t, how)
			want := c.Find(NewText([]byte(text), true))
			for from := range len(text) {
				if got := c.Find(NewText([]byte(text[from:]), from == 0)); got != "" && got != want {
					t.Errorf("%s: %q from byte %d, %q in all", how, got, from, want)
				}
			}
		})
	}
}

// TestValuesAreBounded checks that a long value is cut between characters.
func TestValuesAreBounded(t *testing.T) {
	for _, how := range []string{"a", "a=json:a", "a=re:\"a\": ?\"(.*)\""} {
		t.Run(how, func(t *testing.T) {
			v := parse(t, how).Find(NewText([]byte(`{"a": "x`+strings.Repeat("é", MaxValue)+`"}`), true))
			if len(v) > MaxValue || len(v) < MaxValue-4 || strings.ToValidUTF8(v, "") != v {
				t.Errorf("%s: %d bytes, valid %v", how, len(v), strings.ToValidUTF8(v, "") == v)
			}
		})
	}
}

// TestSearchIsLinear checks that no output takes quadratic time to search. That would take many
// minutes and exceed the time limit of the test.
func TestSearchIsLinear(t *testing.T) {
	for _, text := range []string{strings.Repeat(`acc=""`, 1<<17), "acc=" + strings.Repeat(")", 1<<20),
		strings.Repeat("acc=) ", 1<<17), strings.Repeat("{", 1<<20) +
			"}", strings.Repeat("acc", 1<<18), strings.Repeat("acc='", 1<<18)[:1<<20]} {
		t.Run(text, func(t *testing.T) {
			for _, how := range []string{"acc", "a=json:acc", "a=re:acc=(?:a+)+(b)$"} {
				parse(t, how).Find(NewText([]byte(text), true))
			}
		})
	}
}

// TestInvalidColumnHasAClearError checks that an invalid column has a clear error.
func TestInvalidColumnHasAClearError(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "is missing",
		"=json:a":                "is missing",
		"1a":                     "begins with a letter",
		"a b":                    "key:OTHER",
		"a\x1b":                  "begins with a letter",
		"a=":                     "nothing follows",
		"a=csv:x":                `write json:, re:, key:, or file:, not "csv:x"`,
		"a=0.5":                  "write json:, re:, key:, or file:, not",
		"a=JSON:x":               "small letters",
		"a=json:":                "a path is names",
		"a=json:a..b":            "a path is names",
		"a=re:":                  "is empty",
		"a=re:x=[0-9]+":          "has no group",
		"a=re:(a)(b)":            "has 2 groups",
		"a=re:(":                 "missing closing )",
		"a=key:":                 "names nothing",
		"a=key:x=y":              "may hold no =",
		"a=file:":                "names no file",
		"a=file:x:":              "nothing follows",
		"a=file:x:file:y:z":      "a file in a file",
		"a=file:x:csv:z":         "write json:, re:, key:, or file:, not",
		"a=file:x:re:a":          "has no group",
		strings.Repeat("a", 101): "at most 100",
		"a=json:" + strings.Repeat("a.", 60) + "b": "61 steps",
		"a=re:(" + strings.Repeat("a", 2000) + ")": "at most",
		"\xff": "not valid UTF-8",
	} {
		t.Run(text, func(t *testing.T) {
			c, err := Parse(text)
			if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q: %+v, %v; want %q", text, c, err, want)
			}
		})
	}
}

// TestPlaceholdersInFileNames checks that parameters and ids are replaced once in the name of a
// metric's file.
func TestPlaceholdersInFileNames(t *testing.T) {
	params := []jobs.Param{{Name: "C", Value: "0.1"}, {Name: "1", Value: "[C]{id}"}}
	id := jobs.AttemptID{Job: 17, N: 2}
	for name, want := range map[string]string{
		"m.json":                 "m.json",
		"out/[C]/{id}.json":      "out/0.1/17.json",
		"{run}/x.{attempt}":      "/r/x.17.2",
		"[1]":                    "[C]{id}", // a value is not parsed again
		"[D]{x}[[C]":             "[D]{x}[0.1",
		"plain/[gamma]/{Id}.txt": "plain/[gamma]/{Id}.txt",
	} {
		t.Run(name, func(t *testing.T) {
			if got := nameFor(parse(t, "a=file:"+name+":key:a").File, id, "/r", params); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		})
	}
}

// FuzzParse checks that no column and no output cause a panic. A parsed column survives a round
// trip through its text and finds the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"acc", "acc=json:test.accuracy", "a=re:Accuracy: ([0-9.]+)", "a=file:out/[C].json:x.y",
		"a=key:test acc", "a=file:m.jsonl", "=", "a=re:("} {
		f.Add(s, "acc=1 {\"acc\": NaN}\n{\"test\":{\"accuracy\":[1]}}\nAccuracy: .5", true)
		f.Add(s, "{\"acc\":\"\\", false)
	}
	f.Fuzz(func(t *testing.T, text, output string, whole bool) {
		c, err := Parse(text)
		if err != nil {
			if c != nil || strings.ContainsAny(err.Error(), "\x1b\x00") {
				t.Fatalf("%q: %v, %q", text, c, err)
			}
			return
		}
		again, err := Parse(c.String())
		if err != nil || again.String() != c.String() || again.File != c.File {
			t.Fatalf("%q reads back as %q: %v", text, c.String(), err)
		}
		a := c.Find(NewText([]byte(output), whole))
		b := again.Find(NewText([]byte(output), whole))
		if a != b || len(a) > MaxValue {
			t.Fatalf("%q in %q: %q and %q", text, output, a, b)
		}
		nameFor(c.File, jobs.AttemptID{Job: 1, N: 1}, "/r", []jobs.Param{{Name: text, Value: output}})
	})
}

// TestSuggestedMetricsFindTheNumber checks that a metric is suggested for a text with one number, and
// that it finds this number in the output.
func TestSuggestedMetricsFindTheNumber(t *testing.T) {
	for _, c := range []struct{ column, text, line, want string }{
		{"acc", "score:0.93/best", "acc=score:0.93/best", "0.93"},
		{"acc", "<-0.5>", `{"acc": "<-0.5>"}`, "-0.5"},
		{"a=json:acc", "0.93pts", `{"acc": "0.93pts"}`, "0.93"},
		{"a=key:test acc", "~5e-3", "test acc: ~5e-3", "5e-3"},
		{"a=file:log.txt:key:acc", "~5", "acc: ~5", "5"},
	} {
		t.Run(c.column, func(t *testing.T) {
			how := parse(t, c.column).Suggest(c.text)
			if got := parse(t, how).Find(NewText([]byte(c.line), true)); got != c.want {
				t.Errorf("%s and %q: %s finds %q, want %q", c.column, c.text, how, got, c.want)
			}
		})
	}
	for column, text := range map[string]string{"acc": "bad", "n": "1,234.5", "a=re:acc=(.*)": "~5",
		"a=json:test.acc": "~5", "b": "it's 5"} {
		t.Run(column, func(t *testing.T) {
			if how := parse(t, column).Suggest(text); how != "" {
				t.Errorf("%s and %q: %s is suggested", column, text, how)
			}
		})
	}
}
