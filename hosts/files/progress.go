package files

import (
	"fmt"
	"time"

	"dcs-tui/jobs/results"
)

// Progress says how far a transfer is: "12 MiB of 1.0 GiB, 8.1 MiB/s".
func Progress(got, total int64, took time.Duration) string {
	text := results.HumanBytes(got) + " of " + results.HumanBytes(total)
	if took > time.Second && got > 0 {
		text += fmt.Sprintf(", %s/s", results.HumanBytes(int64(float64(got)/took.Seconds())))
	}
	return text
}
