package jobs

import (
	"fmt"
	"math"
	"strconv"
)

// GPUs is how many devices a job has: a whole number, or HalfGPU.
type GPUs float64

// HalfGPU is half of a device, which the job shares with at most one other.
const HalfGPU GPUs = 0.5

// Devices returns on how many devices the job runs.
func (g GPUs) Devices() int { return int(math.Ceil(float64(g))) }

// String returns the number as a jobs file has it.
func (g GPUs) String() string { return strconv.FormatFloat(float64(g), 'f', -1, 64) }

// Text describes the number: "2 GPUs".
func (g GPUs) Text() string {
	if g == HalfGPU {
		return "half a GPU"
	}
	return Plural(g.Devices(), "GPU")
}

// check returns what is wrong with the number.
func (g GPUs) check() error {
	if g != HalfGPU && (!(g >= 0 && g <= MaxGPUs) || g != GPUs(g.Devices())) {
		return fmt.Errorf("%s is neither 0.5 nor a whole number up to %d", g, MaxGPUs)
	}
	return nil
}

func parseGPUs(v string) (GPUs, error) {
	if v == HalfGPU.String() {
		return HalfGPU, nil
	}
	n, err := count(0, MaxGPUs)(v)
	return GPUs(n), err
}
