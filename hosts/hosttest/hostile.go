package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/jobs"
)

// Attack is what a hostile host does.
type Attack int

// The attacks. Each begins when the first job is launched on the host, unless it says otherwise.
const (
	Honest           Attack = iota // runs its jobs, as all attacks do unless they say otherwise
	ReturnsOthers                  // lists Hostiles.Path as a returned file
	EndlessList                    // lists returned files without end
	HugeFile                       // lists a returned file of 2^62 bytes
	ManyFiles                      // reports more returned files than it lists
	ForgesEnds                     // reports the ends of Hostiles.Victims
	ForgesReturns                  // reports that Hostiles.Victims return a file
	ForgesList                     // lists Hostiles.Victims without being asked
	AnswersList                    // lists Hostiles.Victims when it is asked for a list
	ForgesProbe                    // answers for Hostiles.Victims though nobody has asked it
	ForgesInspection               // tells that Hostiles.Victims of Hostiles.Other have ended
	FencesHello                    // names Hostiles.Epoch in its hello
	FencesRefusal                  // refuses jobs, and names Hostiles.Epoch
	ReadsOthersFiles               // asks for the files of Hostiles.Victims
	IgnoresBye                     // does not end when it is told to
	FloodsStderr                   // writes lines to standard error without end
	FloodsTrouble                  // sends troubles without end
	FloodsHeartbeats               // sends heartbeats without end
	FloodsBytes                    // sends chunks without end that nobody has asked for
	FloodsWants                    // asks for pieces of files without end
	Bursts                         // sends at once what an honest host may have to send after a night
	Scripted                       // sends Hostiles.Script, and returns Hostiles.Path
	WithdrawsAll                   // reports that no launched job will start
	NeverStarts                    // answers without being asked that no launched job has started
	NumAttacks                     // number of attacks
)

var attackNames = [...]string{
	"honest",
	"returns others",
	"endless list",
	"huge file",
	"many files",
	"forges ends",
	"forges returns",
	"forges list",
	"answers list",
	"forges probe",
	"forges inspection",
	"fences in hello",
	"fences in refusal",
	"reads others' files",
	"ignores bye",
	"floods stderr",
	"floods trouble",
	"floods heartbeats",
	"floods bytes",
	"floods wants",
	"bursts",
	"scripted",
	"withdraws all",
	"never starts",
}

// String returns the name of the attack.
func (a Attack) String() string { return attackNames[a] }

// Hostiles opens links to hosts whose helpers speak the wire format in this process, and lie. The
// fields must not be changed after the first Open.
type Hostiles struct {
	Attacks map[string]Attack // by host; the others are honest
	Run     time.Duration     // how long a job runs
	Path    string            // a returned file; "": out.txt
	Content string            // of every returned file
	Victims []jobs.AttemptID  // attempts of other hosts
	Other   string            // the host that has them
	Epoch   int               // of a dispatcher that does not exist
	Script  []hosts.Message   // sent one by one, a second after each other
	Forgets bool              // Received returns nothing
	// Serve plays a helper from its first message on until its link ends or it leaves (nil). nil: the
	// host does what its attack is.
	Serve func(host string, in *helper.Reader, out *helper.Writer) error

	mu       sync.Mutex
	received map[string][]hosts.Message
	hosts    map[string]*liar
}

// liar is a host, which keeps its attempts across links.
type liar struct {
	*Hostiles
	name   string
	attack Attack

	mu    sync.Mutex
	ended map[jobs.AttemptID]*jobs.Outcome // nil: it runs
	ends  map[jobs.AttemptID]ending        // of all that were launched
	uses  bool                             // the attack has begun
}

// ending is when and how an attempt ends by itself.
type ending struct {
	at      time.Time
	outcome jobs.Outcome
}

// Open opens a link to a host. It never fails.
func (x *Hostiles) Open(_ context.Context, h *hosts.Host) (hosts.Link, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.hosts == nil {
		x.hosts, x.received = map[string]*liar{}, map[string][]hosts.Message{}
	}
	if x.hosts[h.Name] == nil {
		x.hosts[h.Name] = &liar{
			Hostiles: x,
			name:     h.Name,
			attack:   x.Attacks[h.Name],
			ended:    map[jobs.AttemptID]*jobs.Outcome{},
			ends:     map[jobs.AttemptID]ending{},
		}
	}
	return &liarLink{liar: x.hosts[h.Name], closed: make(chan struct{})}, nil
}

// Received returns the messages that a host has received.
func (x *Hostiles) Received(host string) []hosts.Message {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]hosts.Message(nil), x.received[host]...)
}

// liarLink is a link to a liar, with one stream.
type liarLink struct {
	*liar
	closed chan struct{} // closed by Close

	pipesMu sync.Mutex
	pipes   []io.Closer // ends of the pipes of the stream
}

func (l *liarLink) KeepAlive(context.Context) error { return nil }

func (l *liarLink) Close() error {
	l.pipesMu.Lock()
	defer l.pipesMu.Unlock()
	select {
	case <-l.closed:
		return nil
	default:
	}
	close(l.closed)
	for _, e := range l.pipes {
		e.Close()
	}
	return nil
}

func (l *liarLink) Start(_ context.Context, command string) (hosts.Stream, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	l.pipesMu.Lock()
	defer l.pipesMu.Unlock()
	select {
	case <-l.closed:
		return nil, errors.New("the link is closed")
	default:
	}
	l.pipes = []io.Closer{inR, inW, outR, outW, errR, errW}
	s := &liarStream{liarLink: l, Reader: outR, in: inW, errs: errR, done: make(chan struct{})}
	talk := &conversation{
		liarLink: l,
		in:       inR,
		out:      outW,
		errs:     errW,
		nonce:    command[strings.LastIndexByte(command, ' ')+1:],
	}
	go func() {
		defer close(s.done)
		if talk.run() == nil {
			s.exited = true
			outW.Close()
			errW.Close()
			return
		}
		l.Close()
	}()
	return s, nil
}

// liarStream is the stream of a helper.
type liarStream struct {
	*liarLink
	io.Reader
	in     io.WriteCloser
	errs   io.Reader
	done   chan struct{}
	exited bool // it ended by itself; written before done is closed
}

func (s *liarStream) Stdin() io.WriteCloser { return s.in }
func (s *liarStream) Stderr() io.Reader     { return s.errs }

func (s *liarStream) Wait() error {
	<-s.done
	if s.exited {
		return nil
	}
	return errors.New("the link was closed")
}

// conversation is a helper in one link.
type conversation struct {
	*liarLink
	in    io.Reader
	out   io.Writer
	errs  io.Writer
	nonce string
	w     *helper.Writer
	ping  atomic.Int64 // number of the newest ping
}

var errLeft = errors.New("left")

// run serves until it is told to leave (nil) or the link breaks.
func (c *conversation) run() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s sys %s %s\n",
		c.nonce, unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Machine[:]))
	for lines, b := 0, make([]byte, 1); lines < 5; {
		if _, err := c.in.Read(b); err != nil {
			return err
		}
		if b[0] == '\n' {
			lines++
		}
	}
	fmt.Fprintf(c.out, "%s have /far\n%s go\n", c.nonce, c.nonce)
	r := helper.NewReader(c.in)
	c.w = helper.NewWriter(c.out)
	if c.Serve != nil {
		return c.Serve(c.name, r, c.w)
	}
	for {
		m, err := r.Read()
		if err != nil {
			return err
		}
		if !c.Forgets {
			c.Hostiles.mu.Lock()
			c.received[c.name] = append(c.received[c.name], m)
			c.Hostiles.mu.Unlock()
		}
		if err := c.handle(m); errors.Is(err, errLeft) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// handle answers a message as an honest host does, except for what its attack is about.
func (c *conversation) handle(m hosts.Message) error {
	switch m := m.(type) {
	case *hosts.Open:
		return c.hello(m)
	case *hosts.Ping:
		c.ping.Store(m.Seq)
	case *hosts.Launch:
		return c.launch(m)
	case *hosts.Kill:
		if m.Warn {
			return nil
		}
		for _, id := range m.Attempts {
			if err := c.end(id, jobs.Outcome{Signal: "SIGTERM", Stopped: true}); err != nil {
				return err
			}
		}
	case *hosts.Withdraw:
		return c.w.Write(&hosts.Withdrawn{Attempts: m.Attempts, Why: "withdrawn"})
	case *hosts.Probe:
		return c.w.Write(&hosts.Probed{Jobs: c.fates(m.Attempts)})
	case *hosts.List:
		answer := &hosts.Listed{Last: true, All: true}
		if c.attack == AnswersList {
			answer.Jobs = c.forgedFates()
		}
		return c.w.Write(answer)
	case *hosts.Inspect:
		answer := &hosts.Inspected{Host: m.Host}
		if c.attack == ForgesInspection {
			for _, id := range c.Victims {
				answer.Jobs = append(answer.Jobs, hosts.ExitedJob{
					Attempt: id,
					Outcome: jobs.Outcome{Started: 1, Ended: 2},
				})
			}
		}
		return c.w.Write(answer)
	case *hosts.Read:
		return c.w.Write(c.read(m))
	case *hosts.Bye:
		if c.attack != IgnoresBye {
			return errLeft
		}
	}
	return nil
}

func (c *conversation) hello(open *hosts.Open) error {
	hello := &hosts.Hello{
		Version:  open.Version,
		Machine:  c.name + "-id",
		BootID:   c.name,
		Uptime:   time.Hour,
		OS:       "linux",
		Cores:    4,
		Slots:    4,
		MemBytes: 8 << 30,
		Dir:      "/far/" + c.name,
	}
	if c.attack == FencesHello {
		hello.FencedBy = c.Epoch
	}
	if c.attack == ForgesInspection {
		hello.Dir = "/far/" + c.Other
	}
	if err := c.w.Write(hello); err != nil {
		return err
	}
	c.liar.mu.Lock()
	for id, e := range c.ends {
		if c.ended[id] == nil { // an earlier link was closed before
			c.awaitEnd(id, e)
		}
	}
	c.liar.mu.Unlock()
	go func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for began := time.Now(); ; {
			if c.w.Write(&hosts.Heartbeat{
				Seq:      c.ping.Load(),
				Uptime:   time.Hour + time.Since(began),
				MemFree:  8 << 30,
				DiskFree: -1,
				Running:  c.numRunning(),
			}) != nil {
				return
			}
			select {
			case <-tick.C:
			case <-c.closed:
				return
			}
		}
	}()
	return nil
}

func (c *conversation) numRunning() (n int) {
	c.liar.mu.Lock()
	defer c.liar.mu.Unlock()
	for _, o := range c.ended {
		if o == nil {
			n++
		}
	}
	return n
}

func (c *conversation) launch(m *hosts.Launch) error {
	if c.attack == FencesRefusal {
		return c.w.Write(&hosts.Refused{FencedBy: c.Epoch, Why: "a newer dispatcher owns this run"})
	}
	if c.attack == WithdrawsAll || c.attack == NeverStarts {
		withdrawn, probed := &hosts.Withdrawn{Why: "no"}, &hosts.Probed{}
		for i := range m.Jobs {
			withdrawn.Attempts = append(withdrawn.Attempts, m.Jobs[i].Attempt)
			probed.Jobs = append(probed.Jobs, hosts.ProbedJob{Attempt: m.Jobs[i].Attempt, Answer: hosts.NeverStarted})
		}
		if c.attack == NeverStarts {
			return c.w.Write(probed)
		}
		return c.w.Write(withdrawn)
	}
	for i := range m.Jobs {
		j := &m.Jobs[i]
		o := jobs.Outcome{Started: 1, Ended: 1 + jobs.Stamp(c.Hostiles.Run)}
		if j.Files != nil && len(j.Files.Return) > 0 {
			o.Files = 1
			if c.attack == ManyFiles {
				o.Files = 1000
			}
		}
		e := ending{time.Now().Add(c.Hostiles.Run), o}
		c.liar.mu.Lock()
		c.ended[j.Attempt], c.ends[j.Attempt] = nil, e
		c.liar.mu.Unlock()
		if err := c.w.Write(
			&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: j.Attempt, Slot: 1, At: 1}}},
		); err != nil {
			return err // the next link awaits its end
		}
		c.awaitEnd(j.Attempt, e)
	}
	c.liar.mu.Lock()
	begun := c.uses
	c.uses = true
	c.liar.mu.Unlock()
	if begun {
		return nil
	}
	return c.begin()
}

// awaitEnd reports the end of an attempt when it has come, unless the link is closed before. It does
// not block.
func (c *conversation) awaitEnd(id jobs.AttemptID, e ending) {
	go func() {
		select {
		case <-time.After(time.Until(e.at)):
			_ = c.end(id, e.outcome)
		case <-c.closed:
		}
	}()
}

// begin begins the attack.
func (c *conversation) begin() error {
	ids := c.Victims
	switch c.attack {
	case ForgesEnds, ForgesReturns:
		m := &hosts.Exits{}
		for _, id := range ids {
			j := hosts.ExitedJob{Attempt: id, Slot: 1, Outcome: jobs.Outcome{Started: 1, Ended: 2}}
			if c.attack == ForgesReturns {
				j.Outcome.Files = 1
			}
			m.Jobs = append(m.Jobs, j)
		}
		return c.w.Write(m, &hosts.Withdrawn{Attempts: ids}, &hosts.Refused{Attempts: ids, Why: "full"})
	case ForgesList:
		return c.w.Write(&hosts.Listed{Jobs: c.forgedFates(), Last: true, All: true})
	case ForgesProbe:
		return c.w.Write(&hosts.Probed{Jobs: c.forgedFates()})
	case ForgesInspection:
		m := &hosts.Inspected{Host: c.Other, Never: ids}
		return c.w.Write(m)
	case ReadsOthersFiles:
		for i, id := range ids {
			if err := c.w.Write(&hosts.Want{ID: int64(i), Attempt: id, Limit: hosts.MaxChunk}); err != nil {
				return err
			}
		}
	case FloodsStderr:
		go c.flood(func(i int) error {
			_, err := fmt.Fprintf(c.errs, "line %d %s\n", i, strings.Repeat("x", 1000))
			return err
		})
	case FloodsTrouble:
		go c.flood(func(i int) error {
			return c.w.Write(&hosts.Trouble{Text: fmt.Sprintf("trouble %d %s", i, strings.Repeat("x", 1000))})
		})
	case FloodsHeartbeats:
		go c.flood(func(i int) error { return c.w.Write(&hosts.Heartbeat{Uptime: 2 * time.Hour}) })
	case FloodsBytes:
		big := make([]byte, hosts.MaxChunk)
		go c.flood(func(i int) error { return c.w.Write(&hosts.Chunk{ID: int64(i), Size: math.MaxInt64, Bulk: big}) })
	case FloodsWants:
		go c.flood(func(i int) error { return c.w.Write(&hosts.Want{ID: int64(i), Limit: 1}) })
	case Bursts:
		return c.burst()
	case Scripted:
		go func() {
			for _, m := range c.Script {
				if c.w.Write(m) != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
	}
	return nil
}

// burst reports the ends of 10,000 attempts, each by itself and with a trouble, lists 100,000
// attempts, and sends the heartbeats of 8 hours.
func (c *conversation) burst() error {
	const numJobs, numListed, numHeartbeats = 10_000, 100_000, 8 * 60 * 60 / 3
	o := jobs.Outcome{Started: 1, Ended: 2, LastLine: strings.Repeat("x", 500)}
	for i := range numJobs {
		id := jobs.AttemptID{Job: jobs.ID(i + 1000), N: 1}
		if err := c.w.Write(
			&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: id, Slot: 1}}},
			&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: o}}},
			&hosts.Trouble{Attempt: id, Text: o.LastLine},
		); err != nil {
			return err
		}
	}
	list := make([]hosts.ProbedJob, 500)
	for i := range list {
		list[i] = hosts.ProbedJob{
			Attempt: jobs.AttemptID{Job: jobs.ID(i + 1000), N: 1},
			Answer:  hosts.HasExited,
			Outcome: &o,
		}
	}
	for range numListed / len(list) {
		if err := c.w.Write(&hosts.Listed{Jobs: list}); err != nil {
			return err
		}
	}
	for i := range numHeartbeats {
		if err := c.w.Write(&hosts.Heartbeat{
			Uptime:   time.Hour + time.Duration(i)*3*time.Second,
			MemFree:  8 << 30,
			DiskFree: -1,
		}); err != nil {
			return err
		}
	}
	return nil
}

// floodSteps bounds a flood, so that a test of a dispatcher without a limit fails instead of
// filling the disk.
const floodSteps = 200_000

func (c *conversation) flood(step func(i int) error) {
	for i := range floodSteps {
		if step(i) != nil {
			return
		}
	}
}

// forgedFates claims that the victims run and have run for very long, or have ended.
func (c *conversation) forgedFates() (list []hosts.ProbedJob) {
	for i, id := range c.Victims {
		p := hosts.ProbedJob{Attempt: id, Answer: hosts.IsRunning, Slot: 1, Started: 1}
		if i%2 == 1 {
			p.Answer, p.Outcome = hosts.HasExited, &jobs.Outcome{Started: 1, Ended: 2}
		}
		list = append(list, p)
	}
	return list
}

func (c *conversation) fates(ids []jobs.AttemptID) (list []hosts.ProbedJob) {
	c.liar.mu.Lock()
	defer c.liar.mu.Unlock()
	for _, id := range ids {
		p := hosts.ProbedJob{Attempt: id, Answer: hosts.NeverStarted}
		if o, ok := c.ended[id]; ok {
			p.Answer, p.Slot, p.Started = hosts.IsRunning, 1, 1
			if o != nil {
				p.Answer, p.Outcome = hosts.HasExited, o
			}
		}
		list = append(list, p)
	}
	return list
}

// end reports the end of an attempt of this host.
func (c *conversation) end(id jobs.AttemptID, o jobs.Outcome) error {
	c.liar.mu.Lock()
	if was, ok := c.ended[id]; ok && was != nil {
		o = *was
	}
	c.ended[id] = &o
	c.liar.mu.Unlock()
	return c.w.Write(&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Slot: 1, Outcome: o}}})
}

// read answers a Read of a returned file or of the list of them.
func (c *conversation) read(m *hosts.Read) *hosts.Chunk {
	all, path, size := c.Content, "out.txt", int64(len(c.Content))
	switch c.attack {
	case ReturnsOthers, ForgesReturns, Scripted:
		if c.Path != "" {
			path = c.Path
		}
	case HugeFile:
		size = 1 << 62
	}
	if m.Path == "" {
		if c.attack == EndlessList {
			return &hosts.Chunk{ID: m.ID, Offset: m.Offset, Size: math.MaxInt64, Bulk: make([]byte, m.Limit)}
		}
		all = string(helper.Append(nil, returnedList{Files: []returnedFile{{Path: path, Kind: 'f', Size: size}}}))
		size = int64(len(all))
	}
	from := min(m.Offset, int64(len(all)))
	to := min(from+int64(m.Limit), int64(len(all)))
	return &hosts.Chunk{ID: m.ID, Offset: from, Size: size, Bulk: []byte(all[from:to])}
}

// returnedList has the encoding of files.Manifest. Package files uses this package in its tests.
type returnedList struct {
	Files   []returnedFile
	Refused string
}

type returnedFile struct {
	Path           string
	Kind           byte
	Exec           bool
	Size, Mtime    int64
	Sum            [32]byte
	Target, Origin string
}
