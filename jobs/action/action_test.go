package action

import (
	"strings"
	"testing"
)

// TestAnswersNameTheirObject checks that the answers of an action on jobs or on a host have a place
// for their number or its name, that other answers have none, and that an action on jobs has an
// answer if it had no effect.
func TestAnswersNameTheirObject(t *testing.T) {
	for name, a := range Table {
		isOnJobs, isOnHost := a.accepts("jobs"), a.accepts("host")
		for _, text := range []string{a.done, a.doneIdle, a.doneAway} {
			if text != "" && strings.Contains(text, "%s") != (isOnJobs || isOnHost) {
				t.Errorf("%s: %q", name, text)
			}
		}
		if (a.none != "") != isOnJobs || (a.left != "") != isOnJobs {
			t.Errorf("%s: the answers are %q and %q if it had no effect", name, a.none, a.left)
		}
	}
}
