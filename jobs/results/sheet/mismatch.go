package sheet

import (
	"fmt"

	"dcs-tui/jobs"
)

// mismatch counts the cells of a column that < and > could not compare with what was
// asked: texts where that was a number, numbers where it was a text. Each job counts once.
type mismatch struct {
	texts, numbers oddity
}

func (o *mismatch) add(v Value, job jobs.ID) {
	if v.Kind == Number {
		o.numbers.add(v, job)
	} else {
		o.texts.add(v, job)
	}
}

// notes says what was left out of a column called name.
func (o *mismatch) notes(name, unit string) (notes []string) {
	if e := &o.texts; e.texts > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s is no number and left out%s", name, jobs.Plural(e.texts, unit), example(e.textJob, e.text)))
	}
	if e := &o.numbers; e.texts > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s is a number and left out: it was compared with a text%s", name, jobs.Plural(e.texts, unit), example(e.textJob, e.text)))
	}
	return notes
}
