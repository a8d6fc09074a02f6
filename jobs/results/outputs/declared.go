package outputs

import (
	"fmt"

	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/rundir"
)

// Option is the key of run.toml's options under which the columns stand that a
// template declared, each as column.Parse reads it (column.Column.String writes it).
const Option = "results"

// Declared returns the columns that were declared when the run was made.
func Declared(asked *rundir.Asked) ([]*column.Column, error) {
	list, _ := asked.Options[Option].([]any)
	if texts, ok := asked.Options[Option].([]string); ok { // not read from a file
		for _, t := range texts {
			list = append(list, t)
		}
	}
	var columns []*column.Column
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return columns, fmt.Errorf("%s: options.%s holds %v, which is no text", rundir.AskedFile, Option, v)
		}
		c, err := column.Parse(text)
		if err != nil {
			return columns, fmt.Errorf("%s: options.%s: %w", rundir.AskedFile, Option, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}
