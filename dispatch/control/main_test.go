package control

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("TEST_KNOCK"); address != "" {
		os.Exit(knock(address))
	}
	goleak.VerifyTestMain(m)
}
