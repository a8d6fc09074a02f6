package forecast

import (
	"math"
	"slices"
	"testing"
)

// TestMomentsEqualTheirDefinition compares the moments with their definition, with censored ages
// and without one of them.
func TestMomentsEqualTheirDefinition(t *testing.T) {
	var st RunTimes
	all := []float64{3, 5, 8, 13, 21, 4}
	for _, x := range all {
		st.Add(x)
	}
	mean := st.mean
	ages := []float64{1, 30, 50, 2}
	for _, a := range ages {
		st.AddRunning(a)
	}
	for _, without := range []float64{0, 30, 1} {
		values := slices.Clone(all)
		for _, a := range ages {
			if a > mean && a != without {
				values = append(values, a)
			}
		}
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += v
		}
		m := sum / float64(len(values))
		for _, v := range values {
			squares += (v - m) * (v - m)
		}
		dev := math.Sqrt(squares / float64(len(values)-1))
		if gm, gd, ok := st.Moments(without); !ok || math.Abs(gm-m) > 1e-9 || math.Abs(gd-dev) > 1e-9 {
			t.Errorf("without %v: %v ± %v, want %v ± %v", without, gm, gd, m, dev)
		}
	}
}
