package tui

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/observe/runview"
)

// TestHeatMapHasTheColorsOfTheReport checks that the levels have the nearest colors to those of the
// report's ramp, at equal distances, and become lighter, so that their order needs no hue.
func TestHeatMapHasTheColorsOfTheReport(t *testing.T) {
	script, err := os.ReadFile("../observe/report/page/charts.js")
	if err != nil {
		t.Fatal(err)
	}
	var ramp [][3]float64
	line := regexp.MustCompile(`const ramp = \[(.*)\]; // viridis`).FindSubmatch(script)
	if line == nil {
		t.Fatal("the report has another ramp")
	}
	for _, c := range regexp.MustCompile(`\[(\d+), (\d+), (\d+)\]`).FindAllString(string(line[1]), -1) {
		var x [3]float64
		if _, err := fmt.Sscanf(c, "[%g, %g, %g]", &x[0], &x[1], &x[2]); err != nil {
			t.Fatal(err)
		}
		ramp = append(ramp, x)
	}
	rgb := func(c uint8) (x [3]float64) {
		r, g, b, _ := ansi.IndexedColor(c).RGBA()
		return [3]float64{float64(r >> 8), float64(g >> 8), float64(b >> 8)}
	}
	distance := func(a, b [3]float64) (d float64) {
		for i := range a {
			d += (a[i] - b[i]) * (a[i] - b[i])
		}
		return d
	}
	light := -1.0
	for level, color := range viridis {
		at := float64(level) / float64(len(viridis)-1) * float64(len(ramp)-1)
		i := min(int(at), len(ramp)-2)
		var want [3]float64
		for k := range want {
			want[k] = ramp[i][k] + (ramp[i+1][k]-ramp[i][k])*(at-float64(i))
		}
		nearest := color
		for c := 16; c < 256; c++ {
			if distance(rgb(uint8(c)), want) < distance(rgb(nearest), want) {
				nearest = uint8(c)
			}
		}
		equal(t, color, nearest, "the color of level %d, which is %v in the report", level, want)
		x := rgb(color)
		if l := 0.2126*x[0] + 0.7152*x[1] + 0.0722*x[2]; l <= light {
			t.Errorf("level %d is not lighter than the one below", level)
		} else {
			light = l
		}
	}
}

// TestHeatMapOnEachTerminal checks that no level has the color of a failure, and that all levels differ
// without any color, with 16 and with 256 colors (rule 8).
func TestHeatMapOnEachTerminal(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, m.fillsCells = range []bool{false, true} {
		seen := map[string]bool{}
		for level := range int8(runview.HeatLevels) {
			text, style := m.shade(level)
			equal(t, width(text), shadeWidth, "the width of %q", text)
			if seen[text] || style == styleBad {
				t.Errorf("level %d is %q, in the color of failures or as another level", level, text)
			}
			seen[text] = true
		}
	}
	v := newView(t, Options{Source: sweepSource(t)}, tabResults, 100, 30)
	v.fillsCells = true
	press(t, v, "h", "acc")
	if !strings.Contains(redraw(v), "48;5;220") {
		t.Error("with 256 colors, the best cell is not filled")
	}
	checkSize(t, v, "filled")
}

// TestColorsOfATerminal checks which colors the screen uses.
func TestColorsOfATerminal(t *testing.T) {
	for _, c := range []struct {
		o    Options
		env  []string
		want colorprofile.Profile
	}{
		{Options{}, []string{"TERM=xterm"}, colorprofile.ANSI},
		{Options{}, []string{"TERM=xterm-256color"}, colorprofile.ANSI256},
		{Options{}, []string{"TERM=tmux-256color"}, colorprofile.ANSI256},
		{Options{}, []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, colorprofile.ANSI256},
		{Options{Colors: "256"}, []string{"TERM=xterm"}, colorprofile.ANSI256},
		{Options{Colors: "16"}, []string{"TERM=xterm-256color"}, colorprofile.ANSI},
		{Options{Colors: "none"}, []string{"TERM=xterm-256color"}, colorprofile.ASCII},
	} {
		equal(t, c.o.colorProfile(c.env), c.want, "colors of %v with %q", c.env, c.o.Colors)
	}
}
