package results

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs/query"
)

// TestMetricsAreParsedAsLibrariesPrintThem checks that wrapped numbers and numbers with a unit are
// numbers, and that other texts are not.
func TestMetricsAreParsedAsLibrariesPrintThem(t *testing.T) {
	for text, want := range map[string]string{
		"0.93": "0.93", "nan": "nan", "91.3%": "91.3% in %", "91.3 %": "91.3 in %",
		"np.float64(0.93)": "0.93", "numpy.int64(-3)": "-3", "np.float32(nan)": "nan", "float16(1e-3)": "1e-3",
		"tensor(0.9300)": "0.9300", "tensor(2.)": "2", "torch.tensor([0.5])": "0.5",
		"tensor(0.9300, device='cuda:0', grad_fn=<MeanBackward0>)": "0.9300",
		"tf.Tensor(0.93, shape=(), dtype=float32)":                 "0.93",
		"Array(0.93, dtype=float32)":                               "0.93", "Decimal('0.930')": "0.930",
		"0.93s": "0.93 in s", "3 ms": "3 in ms", "3 seconds": "3 in s", "-1.5e3 us": "-1.5e3 in µs",
		"2 GiB": "2 in GiB", "9007199254740993 B": "9007199254740993 in B",
		// Texts.
		"f(0.9)": "", "tensor([1, 2])": "", "tensor(1, 2)": "", "np.float64(91%)": "", "np.float64()": "",
		"log(0.9)": "", "1,234.5": "",
		"3x": "", "5th": "", "0x1f": "", "3  ms": "", "ms": "", "7e": "", "3 M": "", "1e999 s": "", "tensor(3 ms)": "",
		"nan s": "",
	} {
		t.Run(text, func(t *testing.T) {
			v, unit := ParseMetric(text)
			got := ""
			if v.Kind == query.Number {
				if got = v.String(); unit != "" {
					got += " in " + unit
				}
			}
			if got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		})
	}
	if v, unit := ParseMetric(""); v.Kind != query.Absent || unit != "" {
		t.Errorf("the empty text is %v in %q", v, unit)
	}
}

// TestUnitsAreNeverMixed checks that no statistic combines numbers with different units, and that a
// note names the others.
func TestUnitsAreNeverMixed(t *testing.T) {
	in := TableInput{Names: []string{"t", "acc"},
		Suggest: func(k int, text string) string { return fmt.Sprintf("a%d=re:%s", k, text) }}
	for _, v := range []string{"3 ms", "1s", "2 sec", "6 s", "0.5", "nan"} {
		in.solved(params("C", "1"), v, "0.5")
	}
	in.Metrics[0][1], in.Metrics[1][1] = "50%", "~0.5"
	s := NewTable(in)
	g, notes, err := s.Group(Grouping{By: []string{"C"}, Measures: []Measure{Mean}, Where: nil})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the groups", plainText(g), "1 6 6 4 nan 4 0.5")
	same(t, "the bases", strings.Join(notes.Basis, "|"),
		"t is based on 4 of 6 jobs: 2 not a number|acc is based on 4 of 6 jobs: 2 not a number")
	same(t, "the notes", strings.Join(notes.Others, "|"),
		`t of 2 jobs has another unit and is left out (such as job 1: "3 ms"): most others have the unit s|`+
			`acc of 1 job is not a number and left out (job 2: "~0.5"); --result 'a1=re:~0.5' finds the number|`+
			`acc of 1 job has another unit and is left out (job 1: "50%"): most others have no unit`)
	best, err := s.BestBy(Order{"t", false})
	if err != nil || s.Job(best.Row) != 2 {
		t.Errorf("the best is %+v, %v; want job 2", best, err)
	}
}
