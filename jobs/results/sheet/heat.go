package sheet

import "math"

// Grid is a pivot as a heat map.
type Grid struct {
	*Pivot
	Levels   int
	Level    [][]int // of each cell 0 (the smallest) to Levels-1 (the largest), -1 for none
	Min, Max float64 // of the finite numbers; NaN when there are none
}

// Heat gives each cell a level. The finite numbers share the levels evenly, an
// infinity has the first or the last; one number alone has the middle; NaN has none.
func (p *Pivot) Heat(levels int) *Grid {
	levels = max(1, levels)
	g := &Grid{Pivot: p, Levels: levels, Level: make([][]int, len(p.Cells)), Min: math.NaN(), Max: math.NaN()}
	for _, row := range p.Cells {
		for _, v := range row {
			if v.Kind == Number && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0) {
				if !(g.Min <= v.Number) { // or there is none yet
					g.Min = v.Number
				}
				if !(g.Max >= v.Number) {
					g.Max = v.Number
				}
			}
		}
	}
	for i, row := range p.Cells {
		g.Level[i] = make([]int, len(row))
		for k, v := range row {
			g.Level[i][k] = g.level(v)
		}
	}
	return g
}

func (g *Grid) level(v Value) int {
	switch {
	case v.Kind != Number || math.IsNaN(v.Number):
		return -1
	case math.IsInf(v.Number, -1):
		return 0
	case math.IsInf(v.Number, 1):
		return g.Levels - 1
	case g.Min == g.Max:
		return g.Levels / 2
	}
	// Halves, because the distance of two large numbers may be none.
	share := (v.Number/2 - g.Min/2) / (g.Max/2 - g.Min/2)
	if math.IsNaN(share) { // numbers that have no halves
		share = (v.Number - g.Min) / (g.Max - g.Min)
	}
	return min(int(share*float64(g.Levels)), g.Levels-1)
}
