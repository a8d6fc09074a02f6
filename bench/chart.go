package main

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// chart is a line chart over evenly spaced values, such as powers of two.
type chart struct {
	title, x, y string
	at          []int
	names       []string
	values      [][]float64 // one slice per series
}

func newChart(title, x, y string, at []int, names ...string) *chart {
	return &chart{title: title, x: x, y: y, at: at, names: names, values: make([][]float64, len(names))}
}

// add appends one value to each series.
func (c *chart) add(values ...float64) {
	for i, v := range values {
		c.values[i] = append(c.values[i], v)
	}
}

var chartTemplate = template.Must(template.New("chart").Parse(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 300" font-family="system-ui, sans-serif" font-size="12">
<style>text { fill: #444 } .g { stroke: #ddd }
@media (prefers-color-scheme: dark) { text { fill: #bbb } .g { stroke: #444 } }</style>
<text x="56" y="18" font-size="14" font-weight="600">{{.Title}}</text>
{{range .Grid}}<line class="g" x1="56" x2="500" y1="{{.Y}}" y2="{{.Y}}"/>
<text x="50" y="{{.Text}}" text-anchor="end">{{.Label}}</text>
{{end}}{{range .Ticks}}<text x="{{.Y}}" y="278" text-anchor="middle">{{.Label}}</text>
{{end}}<text x="500" y="295" text-anchor="end">{{.X}}</text><text x="56" y="295">{{.Unit}}</text>
{{range .Lines}}<polyline points="{{.Points}}" fill="none" stroke="{{.Color}}" stroke-width="2"
{{if .Dash}} stroke-dasharray="5 4"{{end}}/>
<rect x="512" y="{{.Y}}" width="10" height="10" fill="{{.Color}}"/><text x="528" y="{{.Text}}">{{.Name}}</text>
{{end}}</svg>
`))

type chartLine struct {
	Points, Color, Name string
	Dash                bool
	Y, Text             int
}

type chartMark struct {
	Y, Text float64
	Label   string
}

// svg returns the chart as an SVG image.
func (c *chart) svg() ([]byte, error) {
	const left, right, top, bottom = 56.0, 500.0, 34.0, 260.0
	most := 0.0
	for _, s := range c.values {
		for _, v := range s {
			most = max(most, v)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(max(most, 1e-9)/4)))
	for _, m := range []float64{5, 2} {
		if most/(step*m) >= 3 {
			step *= m
			break
		}
	}
	most = math.Ceil(most/step-1e-9) * step
	x := func(i int) float64 { return left + (right-left)*float64(i)/float64(max(1, len(c.at)-1)) }
	y := func(v float64) float64 { return bottom - (bottom-top)*v/most }
	d := struct {
		Title, X, Unit string
		Grid, Ticks    []chartMark
		Lines          []chartLine
	}{Title: c.title, X: c.x, Unit: c.y}
	for v := 0.0; v <= most+step/2; v += step {
		d.Grid = append(d.Grid, chartMark{math.Round(y(v)), math.Round(y(v)) + 4, fmt.Sprintf("%.4g", v)})
	}
	for i, n := range c.at {
		d.Ticks = append(d.Ticks, chartMark{Y: math.Round(x(i)), Label: fmt.Sprint(n)})
	}
	colors := map[string]string{"ideal": "#999", "1 - C^K": "#999", "65 a worker": "#999", "dcs-tui": "#2f78cf"}
	others := []string{"#d78a1c", "#23998a", "#b14f9b", "#7a8a2a"}
	for i, name := range c.names {
		line := chartLine{Name: name, Color: colors[name], Y: 34 + 20*i, Text: 43 + 20*i}
		line.Dash = line.Color == "#999"
		if line.Color == "" {
			line.Color = others[i%len(others)]
		}
		var points []string
		for k, v := range c.values[i] {
			points = append(points, fmt.Sprintf("%.0f,%.0f", x(k), y(v)))
		}
		line.Points = strings.Join(points, " ")
		d.Lines = append(d.Lines, line)
	}
	var b bytes.Buffer
	err := chartTemplate.Execute(&b, d)
	return b.Bytes(), err
}

// chart writes charts to files beside the report and adds them to it.
func (r *report) chart(charts ...*chart) error {
	for i, c := range charts {
		b, err := c.svg()
		if err != nil || r.charts == "" {
			return err
		}
		name := fmt.Sprintf("%s-%d.svg", r.name, i+1)
		r.say("![%s, against %s](%s)", c.title, c.x, filepath.Join(filepath.Base(r.charts), name))
		if err := os.MkdirAll(r.charts, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.charts, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
