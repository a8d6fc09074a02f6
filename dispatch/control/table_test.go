package control

import (
	"context"
	"reflect"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// asking remembers the newest ask.
type asking struct {
	*fake
	ask runview.Ask
}

func (a *asking) Look(ctx context.Context, ask runview.Ask) (*runview.Picture, error) {
	a.ask = ask
	return a.fake.Look(ctx, ask)
}

// X5: the table of results is the same over the socket, levels and places that are zero
// included.
func TestATableOnTheWay(t *testing.T) {
	f := &asking{fake: newFake()}
	f.picture = runview.Picture{Table: &runview.Table{
		Ready: true, Wrong: "\xff", Notes: []string{""}, Read: 1, Jobs: 2, Best: 3, Value: "nan",
		Columns: []runview.TableColumn{{Name: "C", Role: runview.Param, Vary: true}, {}},
		Page:    runview.Page{Cursor: -1, Rows: []runview.Row{{ID: 1, Params: []jobs.Param{{Name: "C"}}}}},
		Figures: [][]string{{"", "0.5"}, {""}},
		Groups:  &runview.TableGroups{Rows: [][]string{{""}}, Best: 0},
		Heat:    &runview.Heat{Rows: []string{""}, Cells: [][]string{{"", "x"}}, Levels: [][]int8{{0, -1}, {0}}},
	}}
	c := dial(t, serving(t, f.fake, func(o *Options) { o.Open = func() (runview.Source, func(), error) { return f, f.let, nil } }))
	ask := runview.Ask{Table: &runview.TableAsk{JobsWindow: runview.JobsWindow{Filter: "C=1", Rows: 3, Above: 1}, Figures: []string{"acc=re:(\xff)"}, By: "acc",
		Group: []string{"C"}, MinSize: 2, Heat: true, Pivot: []string{"a", "b", "c"}, Best: "acc:max"}}
	got, err := c.Look(t.Context(), ask)
	if err != nil || !reflect.DeepEqual(got.Table, f.picture.Table) {
		t.Errorf("%+v, %v", got.Table, err)
	}
	if !reflect.DeepEqual(f.ask.Table, ask.Table) {
		t.Errorf("%+v", f.ask.Table)
	}
	f.picture.Table = &runview.Table{}
	if got, err := c.Look(t.Context(), runview.Ask{Table: &runview.TableAsk{}}); err != nil || got.Table == nil || f.ask.Table == nil {
		t.Errorf("an empty ask or table is lost: %+v, %v", f.ask.Table, err)
	}
}
