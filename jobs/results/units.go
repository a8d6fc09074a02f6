package results

import (
	"regexp"
	"strings"
	"sync"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// units maps the units that metrics may have to one spelling of each.
var units = func() map[string]string {
	all := map[string]string{}
	for _, spellings := range []string{
		"%", "ns nsec", "µs μs us usec", "ms msec", "s sec secs second seconds", "min mins minute minutes",
		"h hr hrs hour hours", "d day days",
		"B byte bytes", "kB KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB",
		"Hz", "kHz", "MHz", "GHz", "dB", "W", "kW", "J", "kJ", "it/s", "s/it", "B/s", "kB/s KB/s", "KiB/s", "MB/s",
		"MiB/s", "GB/s", "GiB/s",
	} {
		for _, spelling := range strings.Fields(spellings) {
			all[spelling], _, _ = strings.Cut(spellings, " ")
		}
	}
	return all
}()

// wrapped matches how numeric libraries print one number: np.float64(0.93), tensor(0.93, device='cuda:0'),
// Array([0.93], dtype=float32). Its group is the number. After it, only named arguments may follow.
var wrapped = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:b?float\d*|longdouble|u?int\d*|[Tt]ensor|EagerTensor|` +
		`[Aa]rray|DeviceArray|Decimal)` +
		`\(\s*(?:\[\s*([^\s,'"()\[\]]+)\s*\]|'([^\s,'"()\[\]]+)'|([^\s,'"()\[\]]+))\s*(?:,\s*\w+=.*)?\)$`)
})

// ParseMetric parses a metric as a job printed it. A number may be wrapped as numeric libraries
// print it, and a unit may follow it, with or without a blank. The text of such a number is the
// number alone, except that a % stays. unit is "" if v has none. Other texts are not numbers.
func ParseMetric(text string) (v query.Value, unit string) {
	v = query.ValueOf(text)
	if v.Kind != query.Text {
		if strings.HasSuffix(text, "%") {
			unit = "%"
		}
		return v, unit
	}
	if text[len(text)-1] == ')' {
		if m := wrapped().FindStringSubmatch(text); m != nil {
			if n := query.ValueOf(m[1] + m[2] + strings.TrimSuffix(m[3], ".")); n.Kind == query.Number &&
				!strings.HasSuffix(n.Text, "%") {
				return n, ""
			}
		}
		return v, ""
	}
	if number, unit := CutUnit(text); unit != "" {
		return query.ValueOf(number), unit
	}
	return v, ""
}

// CutUnit cuts a text such as 0.93s or 3 ms into its number and its unit, in one spelling of each
// unit. unit is "" if the text is not a number with a unit.
func CutUnit(text string) (number, unit string) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, spelling := text[:end], strings.TrimPrefix(text[end:], " ")
	if _, ok := jobs.ParseDecimal(number); !ok || units[spelling] == "" {
		return text, ""
	}
	if v := query.ValueOf(number); v.Kind != query.Number { // beyond the range
		return text, ""
	}
	return number, units[spelling]
}

// metric returns the values of metric k. All numbers of a column have the unit of most of its
// values, or of the first if several units are as frequent. A number with another unit is a text,
// because no statistic may combine the two.
func metric(metrics [][]string, k int) (value func(i int) query.Value, unit func() string) {
	text := func(i int) string {
		if i >= len(metrics) || k >= len(metrics[i]) {
			return ""
		}
		return metrics[i][k]
	}
	unit = sync.OnceValue(func() (most string) {
		count, max := map[string]int{}, 0
		var order []string
		for i := range metrics {
			if v, u := ParseMetric(text(i)); v.Kind == query.Number && !isUnitless(v) {
				count[u]++
				if count[u] == 1 {
					order = append(order, u)
				}
			}
		}
		for _, u := range order {
			if count[u] > max {
				most, max = u, count[u]
			}
		}
		return most
	})
	return func(i int) query.Value {
		v, u := ParseMetric(text(i))
		if v.Kind == query.Number && u != unit() && !isUnitless(v) {
			return query.TextValue(text(i))
		}
		return v
	}, unit
}

// isUnitless reports whether a number is the same in every unit: NaN and the infinities are.
func isUnitless(v query.Value) bool { return v.Number-v.Number != 0 }
