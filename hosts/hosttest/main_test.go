package hosttest

import (
	"os"
	"testing"

	"dcs-tui/internal/polltest"
)

func TestMain(m *testing.M) { os.Exit(polltest.RunWithoutLeaks(m)) }
