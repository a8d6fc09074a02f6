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

// jobEnv makes the environment of jobs: what the login shell gave the helper, the
// run's variables, the job's, and our own (DESIGN 8).
type jobEnv struct {
	base  []string
	where map[string]int // name: index in base
	gpus  []int          // see slotConfig
	buf   []string       // reused from job to job
}

func newJobEnv(inherited []string, s *slotConfig, slot int) *jobEnv {
	e := &jobEnv{where: map[string]int{}, gpus: s.GPUs}
	for _, kv := range inherited {
		if name, value, ok := strings.Cut(kv, "="); ok && !strings.HasPrefix(name, "DCS_") {
			e.setBase(name, value)
		}
	}
	for _, v := range s.Env {
		e.setBase(v.Name, v.Value)
	}
	e.setBase("DCS_RUN", cmp.Or(s.RunName, s.Run))
	e.setBase("DCS_RUN_DIR", s.Dir)
	e.setBase("DCS_HOST", s.Host)
	e.setBase("DCS_SLOT", strconv.Itoa(slot))
	return e
}

func (e *jobEnv) setBase(name, value string) {
	if i, ok := e.where[name]; ok {
		e.base[i] = name + "=" + value
		return
	}
	e.where[name] = len(e.base)
	e.base = append(e.base, name+"="+value)
}

// set overrides or adds one variable of the job at hand.
func (e *jobEnv) set(name, value string) {
	kv := name + "=" + value
	if i, ok := e.where[name]; ok {
		e.buf[i] = kv
		return
	}
	own := e.buf[len(e.base):]
	if i := slices.IndexFunc(own, func(s string) bool { return strings.HasPrefix(s, name+"=") }); i >= 0 {
		own[i] = kv
		return
	}
	e.buf = append(e.buf, kv)
}

// of returns the environment of one job, valid until the next call.
func (e *jobEnv) of(j *hosts.LaunchJob, mark, progress string) []string {
	e.buf = append(e.buf[:0], e.base...)
	for _, v := range j.Env {
		e.set(v.Name, v.Value)
	}
	threads := slices.ContainsFunc(j.Env, func(v jobs.EnvVar) bool { return v.Name == "OMP_NUM_THREADS" })
	if _, set := e.where["OMP_NUM_THREADS"]; !set && !threads {
		e.set("OMP_NUM_THREADS", strconv.Itoa(max(1, j.Slots)))
	}
	if len(j.GPUs) > 0 {
		amount := jobs.GPUs(len(j.GPUs))
		if j.HalfGPU {
			amount = jobs.HalfGPU
		}
		e.set("DCS_GPUS", amount.String())
		order := slices.ContainsFunc(j.Env, func(v jobs.EnvVar) bool { return v.Name == "CUDA_DEVICE_ORDER" })
		if _, set := e.where["CUDA_DEVICE_ORDER"]; !set && !order {
			e.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // as nvidia-smi counts
		}
		var b []byte
		for i, g := range j.GPUs {
			if i > 0 {
				b = append(b, ',')
			}
			if n := slices.Index(e.gpus, g); n >= 0 {
				g = n // CUDA counts the devices that it can open
			}
			b = strconv.AppendInt(b, int64(g), 10)
		}
		e.set("CUDA_VISIBLE_DEVICES", string(b))
	}
	for _, p := range j.Params {
		e.set("DCS_PARAM_"+variableName(p.Name), p.Value)
	}
	e.set("DCS_JOB_ID", strconv.Itoa(int(j.Attempt.Job)))
	e.set("DCS_ATTEMPT", j.Attempt.String())
	e.set("DCS_RESTARTS", strconv.Itoa(j.Restart))
	e.set("DCS_PROGRESS", progress)
	e.set("DCS_REPORT", progress+reportSuffix)
	e.set(cookieVar, mark)
	return e.buf
}

// variableName makes a shell variable's name of any text.
func variableName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
