package column

import (
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// FileFor returns the name of the column's file for one job: {id} is the job's
// number, {attempt} the attempt (17.2), {run} the run directory, [C] the value of
// the parameter C. What names no parameter of the job stays as it is. "" when the
// column stands in the standard output.
func (c *Column) FileFor(id jobs.AttemptID, runDir string, params []jobs.Param) string {
	name := c.File
	if !strings.ContainsAny(name, "{[") {
		return name
	}
	pairs := make([]string, 0, 6+2*len(params))
	pairs = append(pairs, "{id}", strconv.Itoa(int(id.Job)), "{attempt}", id.String(), "{run}", runDir)
	for _, p := range params {
		pairs = append(pairs, "["+p.Name+"]", p.Value)
	}
	return strings.NewReplacer(pairs...).Replace(name)
}
