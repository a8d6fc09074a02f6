//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/account"
	"dcs-tui/internal/zone"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// defaultGrace is the time between TERM and KILL unless Open says otherwise.
const defaultGrace = 5 * time.Second

// newHelper examines the host and prepares everything. If it returns no helper, Error or
// FencedBy in the hello says why.
func newHelper(o *hosts.Open, limits limits) (*helper, *hosts.Hello) {
	hello := newHello()
	slots := func(cores int) int { return min(hosts.SlotRule{Fixed: o.Slots, Less: o.Less}.Count(cores), maxSlots) }
	c := measureCapacity(slots)
	allowed, problem := limits.site.userLimits()
	if problem != "" {
		hello.Warnings = append(hello.Warnings, problem)
	}
	hello.Cores, hello.MachineCores, hello.MemBytes, hello.Limits = c.cores, c.machineCores, c.memory.total, c.limits
	if err := zone.SetLocal(); err != nil {
		hello.Warnings = append(hello.Warnings, err.Error())
	}
	if limits.site.hidesProcesses() {
		hello.Limits = append(hello.Limits, hosts.CapacityLimit{Kind: hosts.CapacityOfProcessList})
	}
	hello.EndsSessions = limits.endsSessions
	if hello.EndsSessions {
		hello.Warnings = append(hello.Warnings, endsSessionsWarning)
	}
	_, hello.ZoneSeconds = time.Now().Zone()
	hello.Slots = slots(hello.Cores)
	allowed.apply(hello)
	h := &helper{
		open:        o,
		slots:       hello.Slots,
		limit:       hello.Slots,
		allowed:     allowed,
		otherSlots:  slots(hello.Cores) - hello.Slots,
		waiting:     map[jobs.AttemptID]bool{},
		running:     map[jobs.AttemptID]*heldAttempt{},
		supervisors: map[int]*supervisor{},
		resolved:    map[jobs.AttemptID]bool{},
		endDone:     make(chan struct{}),
		sharing:     sharing{changed: make(chan struct{}, 1)},
		limits:      limits,
		owners:      newOwners(o, limits.site),

		ownerKnown: make(chan struct{}),
		foundGPUs:  make(chan []int, 1),
	}
	go func() { h.foundGPUs <- findGPUs() }()
	err := allowed.checkOpen(o)
	if err == nil {
		err = h.prepare(hello)
	}
	if err != nil {
		h.removeTraces()
		setError(hello, err)
		return nil, hello
	}
	if hello.FencedBy != 0 {
		return nil, hello
	}
	return h, hello
}

// newHello returns the common fields of every hello.
func newHello() *hosts.Hello {
	return &hosts.Hello{Version: hosts.ProtocolVersion, BootID: bootID(), Uptime: uptime(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, PID: os.Getpid(), WallClock: wallClock()}
}

// setError sets the error, if any, for which this host cannot do what was asked.
func setError(hello *hosts.Hello, err error) {
	if err != nil {
		hello.Error, hello.Passing = err.Error(), isTransient(err)
	}
}

// checkOpen returns an error if no helper can serve o.
func checkOpen(o *hosts.Open) error {
	return cmp.Or(checkVersion(o), checkName("the run's uid", o.Run), checkName("the host's name", o.Host))
}

func checkVersion(o *hosts.Open) error {
	if o.Version != hosts.ProtocolVersion {
		return fmt.Errorf("the dispatcher speaks version %d, this helper %d", o.Version, hosts.ProtocolVersion)
	}
	return nil
}

// prepare finds or creates the directories, passes the fence, and takes the spool over.
func (h *helper) prepare(hello *hosts.Hello) error {
	o := h.open
	var ok bool
	if h.self, ok = readProc(os.Getpid()); !ok {
		return errNoProc
	}
	h.processes = openProcessLimits()
	if err := checkOpen(o); err != nil {
		return err
	}
	if err := h.findDirs(hello); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding our own executable: %w", err)
	}
	base := filepath.Dir(filepath.Dir(exe))
	hello.FencedBy, h.unready = h.makeReady()
	if hello.FencedBy != 0 {
		return nil
	}
	if _, err := stat(spoolOf(base, o.Run, o.Host).path(fileControl)); err != nil && h.unready != nil {
		return h.unready // no attempt was here, so there is nothing to report
	}
	var warning string
	hello.FencedBy, warning, err = h.takeSpool(base)
	if err != nil || hello.FencedBy != 0 {
		return err
	}
	if warning != "" {
		hello.Warnings = append(hello.Warnings, warning)
	}
	if hello.Machine, err = h.machineID(); err != nil {
		h.unready = cmp.Or(h.unready, fmt.Errorf("the id of this machine cannot be kept: %w", err))
	}
	if hello.Machine == "" && h.unready != nil {
		return h.unready
	}
	if h.control.private {
		h.unready = &fs.PathError{Op: "write", Path: h.spool.dir, Err: unix.EROFS}
	}
	hello.Spool, hello.Dir = h.spool.dir, h.dir
	h.setConfig(hello)
	if h.spoolDirs, err = h.spool.openDirs(); err != nil {
		return err
	}
	h.files = newReceiver(h.config.Files)
	hello.Receives = o.Sends
	h.unused, _ = h.spool.list(dirFree)
	if err := h.wakePipe.open(h.generation); err != nil {
		return err
	}
	h.gpus = lockedGPUs(h.shareDir())
	hello.LockedGPUs, hello.PartGPUs = h.gpus.whole, h.gpus.parts
	hello.Owner = h.firstOwner()
	h.updateShare(nil, 0)
	hello.Sharing = h.sharing.current.Load()
	h.probes, h.reads = newWorker(), newWorker()
	if o.Check {
		home, _ := account.Home()
		if warning := ticketWarning(h.limits.site.root, home, h.dir, h.config.Cwd); warning != "" {
			hello.Warnings = append(hello.Warnings, warning)
		}
	}
	if o.Cwd != "" {
		if err := checkCwd(o.Cwd); err != nil {
			hello.CwdError = err.Error()
		}
	}
	return nil
}

// makeReady writes what must be durable before the first launch: the fence against earlier dispatchers, a
// test file beside the attempts, and, once there is a spool, the id of the machine. After an error the
// helper reports what runs, but starts nothing. The control page is then the only fence.
func (h *helper) makeReady() (fencedBy int, err error) {
	if fencedBy, err = passFence(h.workDir, h.open); err != nil || fencedBy != 0 {
		return fencedBy, err
	}
	if err := tryWrite(tempNames{filepath.Join(h.dir, "attempts"), h.open.Host, h.holder()}); err != nil {
		return 0, fmt.Errorf("no job can be run here, its files could not be written: %w", err)
	}
	if h.control != nil {
		_, err = h.machineID()
	}
	return 0, err
}

// setConfig sets the configuration of supervisors.
func (h *helper) setConfig(hello *hosts.Hello) {
	o := h.open
	shell := strings.Fields(o.Shell)
	if len(shell) == 0 {
		shell = []string{"/bin/sh"}
	}
	if path, err := exec.LookPath(shell[0]); err == nil {
		shell[0] = path // otherwise each job reports that the shell is missing
	}
	grace := time.Duration(o.GraceSeconds * float64(time.Second))
	if grace <= 0 {
		grace = defaultGrace
	}
	cwd := o.Cwd
	if cwd == "" {
		cwd, _ = account.Home()
	}
	hello.GPUIDs = <-h.foundGPUs
	hello.GPUs = len(hello.GPUIDs)
	h.config = slotConfig{
		GPUs:       hello.GPUIDs,
		Run:        o.Run,
		RunName:    o.RunName,
		Host:       o.Host,
		Dir:        h.dir,
		Boot:       hello.BootID,
		Network:    onNetwork(filepath.Join(h.dir, "attempts")),
		Cwd:        cwd,
		Shell:      shell,
		Setup:      o.Setup,
		Env:        o.Env,
		Nice:       o.Nice,
		Pin:        o.Pin,
		Grace:      grace,
		Signal:     o.Signal,
		WarnBefore: o.WarnBefore,
		ShareDir:   h.shareDir(),
		RunDir:     h.runDir,
		Files:      filesDir(h.workDir, o.Host),
		Sends:      o.Sends,
		KeepFiles:  o.KeepFiles,
	}
}

// shareDir returns the directory through which runs and users share this host.
func (h *helper) shareDir() string { return cmp.Or(h.open.ShareDir, defaultShareDir) }

// workPath returns the absolute path of work_dir on this host. "" is the default.
func workPath(work string) (string, error) {
	home, herr := account.Home()
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

// findDirs finds or creates the directories of the run and of its attempts.
func (h *helper) findDirs(hello *hosts.Hello) error {
	work, err := workPath(h.open.WorkDir)
	if err != nil {
		return err
	}
	h.workDir = filepath.Join(work, h.open.Run)
	if h.open.Check {
		h.workDir, h.checkDir = checkedDir(work, h.open.Run)
		work = filepath.Dir(h.workDir)
	}
	if err := makeDirs(work); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w; set work_dir for this host", err)
	}
	if err := checkOwner(work); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	if err := makeOwnDir(h.workDir); err != nil {
		return fmt.Errorf("work_dir cannot be used: %w; set work_dir for this host", err)
	}
	guard(h.workDir)
	if err := h.findPlace(hello); err != nil {
		return err
	}
	guard(h.dir)
	return nil
}

func checkCwd(cwd string) error {
	listNames(filepath.Dir(cwd)) // makes NFS refresh its cache
	st, err := stat(cwd)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = fmt.Errorf("%s is not a directory", cwd)
	}
	return err
}

// fileMachine plus the host's name is the file with the random part of machineID.
const fileMachine = "machine."

// machineID identifies this machine among those that the dispatcher may find under the same
// name. It has a random part, kept in work_dir, which differs between clones of a machine,
// and the system's own id, which differs between machines that share work_dir. The spool,
// elsewhere on the machine, has a copy of the random part: a machine that has lost work_dir
// may still run attempts. An error beside an id means that a copy of it could not be written.
func (h *helper) machineID() (string, error) {
	if h.open.Check {
		return "", nil
	}
	note, copied := filepath.Join(h.workDir, fileMachine+h.open.Host), h.spool.path(fileMachine+h.open.Host)
	b, err := readFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = readFile(copied)
		if errors.Is(err, fs.ErrNotExist) {
			random := make([]byte, 8)
			rand.Read(random)
			b, err = []byte(hex.EncodeToString(random)), nil
		}
		if err == nil {
			err = replace(tempNames{h.workDir, h.open.Host, h.holder()}.path(), note, b)
		}
		if err == nil {
			b, err = readFile(note) // another helper may have written it first
		}
	}
	if err != nil {
		return "", err
	}
	if was, _ := readFile(copied); !bytes.Equal(was, b) {
		err = writeFile(copied, b)
	}
	system, _ := os.ReadFile("/etc/machine-id")
	id := fmt.Sprintf("%s-%08x", b, crc32.ChecksumIEEE(system))
	// A host that reads this host's attempts for the dispatcher proves with it what it has read.
	if path := attempts.MachineFile(h.dir, h.open.Host); err == nil && !holds(path, id) {
		err = replace(tempNames{filepath.Join(h.dir, "attempts"), h.open.Host, h.holder()}.path(), path, []byte(id))
	}
	return id, err
}

// holds reports whether a file has this content.
func holds(path, content string) bool {
	b, err := readPlain(path, len(content)+1)
	return err == nil && string(b) == content
}

// The place of a host's attempts is chosen once per run and recorded in work_dir. Otherwise
// a helper that does not see the shared directory for a moment, or sees a copy of it, would
// miss the claims there and report that attempts never started.
const (
	filePlace   = "place."        // plus the host's name
	placeShared = "run directory" // plus a blank and its path
	placeOwn    = "work_dir"
)

// cutPlace splits a record into the place and the path of the run directory, if any.
func cutPlace(note []byte) (place, dir string) {
	text := strings.TrimSuffix(string(note), "\n")
	if dir, ok := strings.CutPrefix(text, placeShared+" "); ok {
		return placeShared, dir
	}
	return text, ""
}

// errUnseen is transient: file servers come back, and automounters are slow.
var errUnseen = errors.New("the run directory")

// findPlace chooses where attempts are written: the run directory if this host sees its
// nonce, otherwise the run's directory below work_dir.
func (h *helper) findPlace(hello *hosts.Hello) error {
	note := filepath.Join(h.workDir, filePlace+h.open.Host)
	var was []byte
	var err error
	if !h.open.Check {
		was, err = readFile(note)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	sees, err := seesNonce(h.open.RunDir, h.open.Nonce)
	if sees {
		h.runDir = h.open.RunDir
	}
	place, noted := cutPlace(was)
	other := false // RunDir is a copy of the directory with the attempts
	if err == nil && place == placeShared && noted != h.open.RunDir {
		switch {
		case sees:
			other, err = h.isOther(noted)
		case h.open.Mirrored:
			other, err = seesNonce(noted, h.open.Nonce)
		}
	}
	switch {
	case place == placeOwn:
		if sees {
			hello.Warnings = append(hello.Warnings, fmt.Sprintf("%s, which this host did not see before, "+
				"is there now; the run's files stay in %s", h.open.RunDir, h.workDir))
		}
		sees, err = false, nil
	case err != nil:
		return fmt.Errorf("check whether this host shares the run directory: %w", err)
	case place == placeShared && !sees && !other:
		return fmt.Errorf("%w: %s, where this host's attempts are, cannot be seen there now; is it mounted?",
			errUnseen, h.open.RunDir)
	case h.open.Check:
	case place == "" && !sees:
		err = h.recordPlace(note, placeOwn)
	case other:
		hello.Warnings = append(hello.Warnings, fmt.Sprintf("%s is a copy of %s; this host's files of "+
			"the run stay in %s", h.open.RunDir, noted, noted))
	case place == "" || noted != h.open.RunDir:
		err = h.recordPlace(note, placeShared+" "+h.open.RunDir)
	}
	if err != nil {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	h.dir = h.workDir
	switch {
	case other:
		h.dir = noted
	case sees:
		h.dir, hello.Shared = h.open.RunDir, true
	}
	h.disk = rundir.WithCalls(h.dir, call)
	return nil
}

// isOther reports whether the recorded run directory still exists and is not RunDir. A run
// directory that was moved is not another one.
func (h *helper) isOther(noted string) (bool, error) {
	sees, err := seesNonce(noted, h.open.Nonce)
	if err != nil || !sees {
		return false, err
	}
	a, err1 := stat(noted)
	b, err2 := stat(h.open.RunDir)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	return a.Dev != b.Dev || a.Ino != b.Ino, nil
}

func (h *helper) recordPlace(note, place string) error {
	return replace(tempNames{h.workDir, h.open.Host, h.holder()}.path(), note, []byte(place+"\n"))
}

// maxNonce is more than the bytes of a nonce.
const maxNonce = 4096

// seesNonce reports whether dir contains the nonce. It lists dir before it opens the file,
// because NFS may hide a name for long that was asked for too early. An error means that the
// answer is unknown.
func seesNonce(dir, nonce string) (bool, error) {
	if dir == "" || nonce == "" || !filepath.IsAbs(dir) {
		return false, nil
	}
	names, err := listNames(dir)
	if isAbsent(err) || err == nil && !slices.Contains(names, "nonce") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Somebody else may have made a directory of that name here, with anything in it.
	b, err := readPlain(filepath.Join(dir, "nonce"), maxNonce)
	if err != nil && !errors.Is(err, unix.EACCES) {
		return false, err
	}
	return string(bytes.TrimSpace(b)) == strings.TrimSpace(nonce), nil
}

// isAbsent reports whether an error proves that nothing for us is at that path.
func isAbsent(err error) bool {
	return isAny(err, unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ELOOP, unix.ENAMETOOLONG)
}

// tryWrite creates dir and writes and fsyncs a file of the size of a status file, so that a
// read-only or full directory is found before the first job.
func tryWrite(t tempNames) error {
	if err := makeDirs(t.dir); err != nil {
		return err
	}
	if err := t.removeDead(); err != nil {
		return err
	}
	temp := t.path()
	err := writeTemp(temp, make([]byte, attempts.StatusBytes))
	if err == nil {
		err = retryUnlessMissing(func() error { return remove(temp) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the reply to an earlier removal was lost
	}
	return err
}

// isTransient reports whether a file system error may go away without a person's help. The
// host is then tried again. A file system stays read-only until a person mounts it otherwise.
func isTransient(err error) bool {
	_, limited := errors.AsType[*limitError](err)
	return limited ||
		isAny(err, unix.ENOSPC, unix.EDQUOT, unix.ESTALE, unix.EIO, unix.EINTR, unix.ETIMEDOUT, errUnseen)
}

// A check leaves only the program on a host. The uid that it sends instead of a run's is
// unique, so everything below a directory of that name belongs to the check.

// checkedDir returns the directory that a check creates below dir, and the path that it must
// remove at its end. If dir does not exist, the check uses a directory beside it: other
// hosts with the same work_dir, or a run that begins, could not tell who must remove dir.
func checkedDir(dir, uid string) (own, remove string) {
	missing := ""
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		var st unix.Stat_t
		// Treat an unknown error as existing: a run would fail there, too. A dangling link
		// exists.
		if err := statat(unix.AT_FDCWD, d, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = d
	}
	if missing == "" {
		own = filepath.Join(dir, uid)
		return own, own
	}
	remove = missing + "." + uid
	return filepath.Join(remove+strings.TrimPrefix(dir, missing), uid), remove
}

// removeTraces removes what a check has created.
func (h *helper) removeTraces() {
	if !h.open.Check {
		return
	}
	withTimeout(filesTimeout, func() {
		if h.spool.dir != "" {
			removeTree(h.spool.dir)
			run := filepath.Dir(h.spool.dir)
			for _, dir := range []string{run, filepath.Dir(run)} {
				unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR) // fails while others use it
			}
		}
		if h.checkDir != "" {
			removeTree(h.checkDir)
		}
	})
}
