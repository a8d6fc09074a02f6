//go:build linux

package remote

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// procsVar is the variable that sets the number of processors of a Go program. The runtime reserves
// memory for each processor when it starts, by default for each core of the machine: with 64 cores,
// a supervisor would have three times the memory that it has with one.
const procsVar = "GOMAXPROCS="

// jobsOwnMark precedes a variable of the login shell that jobs get but our processes do not.
const jobsOwnMark = "DCS_JOBS_OWN_"

// smallEnv returns the environment of a supervisor or a suspender, which gets one processor.
func smallEnv(inherited []string) []string {
	env := slices.Clone(inherited)
	for i, kv := range env {
		if strings.HasPrefix(kv, procsVar) {
			env[i] = jobsOwnMark + kv
		}
	}
	return append(env, procsVar+"1")
}

// baseEnv returns the environment that all jobs of a supervisor begin with: what the login
// shell gave the helper, the variables of the run, and ours that are the same for all jobs.
// Of several entries for one variable the last one counts.
func baseEnv(inherited []string, cfg *slotConfig, slot int) (env []string) {
	for _, kv := range inherited {
		own, isOwn := strings.CutPrefix(kv, jobsOwnMark)
		if isOwn || strings.Contains(kv, "=") && !strings.HasPrefix(kv, "DCS_") && !strings.HasPrefix(kv, procsVar) {
			env = append(env, own)
		}
	}
	for _, v := range cfg.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return append(env,
		"DCS_RUN="+cmp.Or(cfg.RunName, cfg.Run),
		"DCS_RUN_DIR="+cfg.Dir,
		"DCS_HOST="+cfg.Host,
		"DCS_SLOT="+strconv.Itoa(slot))
}

// jobEnv returns the environment of a job, without duplicates. cores is the number of cores to which
// the job is bound (0: to none), gpus are the devices of the host, and progress is the path of the
// job's DCS_PROGRESS.
func jobEnv(base []string, j *hosts.LaunchJob, cores int, gpus []int, mark, progress string) []string {
	// Defaults come first, so that the user's values override them.
	env := []string{"OMP_NUM_THREADS=" + strconv.Itoa(cmp.Or(cores, max(1, j.Slots)))}
	if len(j.GPUs) > 0 {
		// The order in which nvidia-smi numbers devices.
		env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID")
	}
	env = append(env, base...)
	for _, v := range j.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	if len(j.GPUs) > 0 {
		amount := cmp.Or(j.GPUShare, jobs.GPUs(len(j.GPUs))*jobs.WholeGPU)
		visible := slices.Clone(j.GPUs)
		for i, g := range visible {
			if n := slices.Index(gpus, g); n >= 0 {
				visible[i] = n // CUDA numbers the devices that it can open
			}
		}
		env = append(env, "DCS_GPUS="+amount.String(), "CUDA_VISIBLE_DEVICES="+joinInts(visible))
	}
	for _, p := range j.Params {
		env = append(env, "DCS_PARAM_"+variableName(p.Name)+"="+p.Value)
	}
	env = append(env,
		"DCS_JOB_ID="+strconv.Itoa(int(j.Attempt.Job)),
		"DCS_ATTEMPT="+j.Attempt.String(),
		"DCS_RESTARTS="+strconv.Itoa(j.Restart),
		"DCS_PROGRESS="+progress,
		"DCS_REPORT="+progress+reportSuffix,
		cookieVar+"="+mark)
	return lastValues(env)
}

// lastValues removes all but the last entry for each variable.
func lastValues(env []string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	kept := env[:0]
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			kept = append(kept, kv)
		}
	}
	return kept
}

// variableName converts any text to the name of a shell variable.
func variableName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
