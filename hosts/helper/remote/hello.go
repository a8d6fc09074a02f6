//go:build linux

package remote

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// defaultGrace is the time between TERM and KILL unless Open says otherwise.
const defaultGrace = 5 * time.Second

// newHelper looks at the host and makes everything ready. Without a helper the
// hello says why: Error, or FencedBy.
func newHelper(o *hosts.Open, lim limits) (*helper, *hosts.Hello) {
	hello := &hosts.Hello{
		Version:   hosts.ProtocolVersion,
		BootID:    bootID(),
		Uptime:    uptime(),
		OS:        runtime.GOOS,
		Arch:      runtime.GOARCH,
		Cores:     runtime.NumCPU(),
		MemBytes:  memory().total,
		PID:       os.Getpid(),
		WallClock: wall(),
	}
	_, hello.ZoneSeconds = time.Now().Zone()
	hello.Slots = min(hosts.SlotRule{Fixed: o.Slots, Less: o.Less}.Count(hello.Cores), maxSlots)
	h := &helper{
		open:     o,
		slots:    hello.Slots,
		limit:    hello.Slots,
		waiting:  map[jobs.AttemptID]bool{},
		running:  map[jobs.AttemptID]*run{},
		sups:     map[int]*supervisor{},
		resolved: map[jobs.AttemptID]bool{},
		endDone:  make(chan struct{}),
		sharing:  sharing{changed: make(chan struct{}, 1)},
		lim:      lim,
		owners:   newOwners(o, lim.site),

		ownerKnown: make(chan struct{}),
		found:      make(chan []int, 1),
	}
	go func() { h.found <- findGPUs() }()
	if err := h.prepare(hello); err != nil {
		h.removeTraces()
		hello.Error, hello.Passing = err.Error(), passing(err)
		return nil, hello
	}
	if hello.FencedBy != 0 {
		return nil, hello
	}
	return h, hello
}

// prepare finds or makes the directories, passes the fence, and takes the spool.
func (h *helper) prepare(hello *hosts.Hello) error {
	o := h.open
	var ok bool
	if h.self, ok = readProc(os.Getpid()); !ok {
		return errNoProc
	}
	if o.Version != hosts.ProtocolVersion {
		return fmt.Errorf("the dispatcher speaks version %d, this helper %d", o.Version, hosts.ProtocolVersion)
	}
	if err := plainName("the run's uid", o.Run); err != nil {
		return err
	}
	if err := plainName("the host's name", o.Host); err != nil {
		return err
	}
	if err := h.findDirs(hello); err != nil {
		return err
	}
	var err error
	if hello.FencedBy, err = passFence(h.workDir, o); err != nil || hello.FencedBy != 0 {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding our own executable: %w", err)
	}
	var warning string
	hello.FencedBy, warning, err = h.takeSpool(filepath.Dir(filepath.Dir(exe)))
	if err != nil || hello.FencedBy != 0 {
		return err
	}
	if warning != "" {
		hello.Warnings = append(hello.Warnings, warning)
	}
	if hello.Machine, err = h.machineID(); err != nil {
		return fmt.Errorf("the id of this machine cannot be kept: %w", err)
	}
	hello.Spool, hello.Dir = h.spool.dir, h.dir
	h.setConfig(hello)
	if err := h.spool.writeConfig(h.generation, &h.cfg); err != nil {
		return err
	}
	if h.in, err = openDir(h.spool.path(dirIn)); err == nil {
		h.taken, err = openDir(h.spool.path(dirTaken))
	}
	if err == nil {
		h.free, err = openDir(h.spool.path(dirFree))
	}
	if err != nil {
		return fmt.Errorf("opening the spool: %w", err)
	}
	h.files = newReceiver(h.cfg.Files)
	hello.Receives = o.Sends
	h.unused, _ = h.spool.list(dirFree)
	if err := h.wakePipe.open(h.generation); err != nil {
		return err
	}
	h.gpus = lockedGPUs(h.shareDir())
	hello.LockedGPUs, hello.HalfGPUs = h.gpus.whole, h.gpus.half
	hello.Owner = h.lookFirst()
	h.lookAtShare(nil, 0)
	hello.Sharing = h.sharing.now.Load()
	h.probes, h.reads = newWorker(), newWorker()
	if o.Cwd != "" {
		if err := cwdThere(o.Cwd); err != nil {
			hello.CwdError = fmt.Sprintf("%v (jobs run where dcs-tui was started; see --cwd)", err)
		}
	}
	return nil
}

// setConfig makes what supervisors are told.
func (h *helper) setConfig(hello *hosts.Hello) {
	o := h.open
	shell := strings.Fields(o.Shell)
	if len(shell) == 0 {
		shell = []string{"/bin/sh"}
	}
	if path, err := exec.LookPath(shell[0]); err == nil {
		shell[0] = path // otherwise each job says that there is no such shell
	}
	grace := time.Duration(o.GraceSeconds * float64(time.Second))
	if grace <= 0 {
		grace = defaultGrace
	}
	cwd := o.Cwd
	if cwd == "" {
		cwd, _ = os.UserHomeDir()
	}
	hello.GPUIDs = <-h.found
	hello.GPUs = len(hello.GPUIDs)
	h.cfg = slotConfig{
		GPUs: hello.GPUIDs,
		Run:  o.Run, RunName: o.RunName, Host: o.Host, Dir: h.dir, Boot: hello.BootID, Network: onNetwork(filepath.Join(h.dir, "attempts")),
		Cwd: cwd, Shell: shell, Setup: o.Setup, Env: o.Env, Nice: o.Nice, Grace: grace, Signal: o.Signal, WarnBefore: o.WarnBefore, ShareDir: h.shareDir(), RunDir: h.runDir,
		Files: filesDir(h.workDir, o.Host), Sends: o.Sends, KeepFiles: o.KeepFiles,
	}
}

// shareDir returns the directory of the locks of this host's GPUs.
func (h *helper) shareDir() string { return cmp.Or(h.open.ShareDir, defaultShareDir) }

// workPath is where work_dir is on this host; "" is the default.
func workPath(work string) (string, error) {
	home, herr := os.UserHomeDir()
	switch {
	case work == "":
		work = "~/.dcs-tui"
		fallthrough
	case work == "~" || strings.HasPrefix(work, "~/"):
		if herr != nil {
			return "", fmt.Errorf("work_dir: %w; set work_dir to an absolute path", herr)
		}
		work = filepath.Join(home, strings.TrimPrefix(work[1:], "/"))
	}
	if !filepath.IsAbs(work) {
		return "", fmt.Errorf("work_dir %q is not an absolute path", work)
	}
	return work, nil
}

// findDirs makes the directories in which attempts are written.
func (h *helper) findDirs(hello *hosts.Hello) error {
	work, err := workPath(h.open.WorkDir)
	if err != nil {
		return err
	}
	h.workDir = filepath.Join(work, h.open.Run)
	if h.open.Check {
		h.workDir, h.checked = checkedDir(work, h.open.Run)
		work = filepath.Dir(h.workDir)
	}
	if err := makeDirs(work); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w; set work_dir for this host", err)
	}
	if err := notOthers(work); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	if err := ownDir(h.workDir); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w; set work_dir for this host", err)
	}
	if err := h.findPlace(hello); err != nil {
		return err
	}
	if err := tryWrite(temps{filepath.Join(h.dir, "attempts"), h.open.Host, h.holder()}); err != nil {
		return fmt.Errorf("no job can be run here, its files could not be written: %w", err)
	}
	return nil
}

func cwdThere(cwd string) error {
	list(filepath.Dir(cwd)) // so that NFS looks anew
	st, err := stat(cwd)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = fmt.Errorf("%s is not a directory", cwd)
	}
	return err
}
