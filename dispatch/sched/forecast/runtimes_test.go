package forecast

import (
	"math"
	"slices"
	"testing"
)

// TestEstimateEqualsItsDefinition compares the moments and the estimates with their definition, with censored
// ages and without those of a host, or one of them if it is the only one.
func TestEstimateEqualsItsDefinition(t *testing.T) {
	var st RunTimes
	all := []float64{3, 5, 8, 13, 21, 4}
	for _, x := range all {
		st.Add(x)
	}
	ages := map[string][]float64{"a": {1, 30, 40}, "b": {50, 2}}
	for host, on := range ages {
		for _, age := range on {
			st.AddRunning(host, age)
		}
	}
	for _, tt := range []struct {
		host   string
		isOnly bool
		age    float64
		others []float64
	}{
		{"", false, 0, []float64{30, 40, 50}},
		{"a", false, 30, []float64{50}},
		{"b", false, 2, []float64{30, 40}},
		{"a", true, 30, []float64{40, 50}},
		{"a", true, 1, []float64{30, 40, 50}},
	} {
		values := append(slices.Clone(all), tt.others...)
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += v
		}
		m := sum / float64(len(values))
		for _, v := range values {
			squares += (v - m) * (v - m)
		}
		dev := math.Sqrt(squares / float64(len(values)-1))
		if got, ok := st.Estimate(tt.host, tt.isOnly, tt.age); !ok || math.Abs(got-m-2*dev) > 1e-9 {
			t.Errorf("%v: %v, want %v", tt, got, m+2*dev)
		}
		if gm, gd, ok := st.Moments(); tt.host == "" && (!ok || math.Abs(gm-m) > 1e-9 || math.Abs(gd-dev) > 1e-9) {
			t.Errorf("%v ± %v, want %v ± %v", gm, gd, m, dev)
		}
	}
}
