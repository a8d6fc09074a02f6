package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// model is the state of the screen. Bubble Tea's goroutine owns it.
type model struct {
	opt       Options
	src       runview.Source
	snapshots *snapshotter
	now       func() time.Time
	glyphs    *glyphs
	// The terminal has 256 colors, so the heat map fills its cells.
	fillsCells bool

	w, h       int
	frame      string // the rows of the screen; "": they must be redrawn
	pressedKey string // the last key that no modal has received
	inPress    bool   // it is being carried out
	requestKey string // key of the snapshotter's current request

	snap        *runview.Snapshot // the newest snapshot; nil before the first
	drawnAt     time.Time         // when the screen was last drawn
	snapshotErr error             // why there is no newer snapshot; nil: no error

	tab           tab
	panes         [numTabs]pane
	jobs          *jobsPane
	hosts         *hostsPane
	failed        *failedPane
	results       *resultsPane
	events        *eventsPane
	cursorOutput  pane    // output of the job under the cursor, on tall screens
	extraZoomed   bool    // extra covers the whole body
	summaryHidden bool    // the summary of a finished run is hidden
	namePrefix    string  // common prefix of the visible names
	searches      history // in outputs
	extra         pane    // the details or the output of a job, under the view; nil: closed
	lowerFocused  bool    // the focus is on extra or, without extra, on cursorOutput
	focusedTab    tab     // view with the focus, where several panes are visible
	fullWidth     bool    // the view has the full width
	viewZoomed    bool    // the view with the focus has the whole screen
	previousTab   tab     // the previous view
	modal         modal   // receives all keys; nil: none

	outside       atomic.Pointer[outsideProgram] // the program that has the terminal; nil: the screen has it
	troubleGroups []runview.HostGroup            // hosts in trouble, by cause
	troubleTexts  []runview.HostText             // from which troubleGroups was computed
	message       message
	undo          *undo
	hostActions   map[string]hostAction // newest drain, stop, or use of a host from here
	answeredID    int64                 // ID of the newest question that was answered here
	placed        []placedPane          // panes as last drawn
	tabsAt        int                   // row of the titles of the views as last drawn; 0: not shown
}

// message is the line above the footer: the result of the last key.
type message struct {
	text      string
	isError   bool // the next key that works removes it
	isHint    bool // it only explains why a key did nothing
	byKey     bool // a key has shown it at once; otherwise an answer has, which the user has to notice
	shownAt   time.Time
	expiresAt time.Time
	action    action.Name // the action that it answers; "": none
}

// readTime is how long a warning that no key has caused stays at least.
const readTime = 2 * time.Second

// undo contains the jobs that the last action has ended.
type undo struct {
	jobs      jobs.Ranges
	expiresAt time.Time
}

// undoTimeout is how long `u` works after a cancel (rule 9).
const undoTimeout = 10 * time.Second

func newModel(o Options, now func() time.Time) *model {
	m := &model{opt: o, src: o.Source, now: now, glyphs: &utf8Glyphs, w: 80, h: 24,
		hostActions: map[string]hostAction{}}
	if o.ASCII {
		m.glyphs = &asciiGlyphs
	}
	if o.Suspended == nil {
		m.opt.Suspended = func(bool) {}
	}
	m.jobs, m.hosts, m.events = &jobsPane{}, &hostsPane{}, &eventsPane{}
	m.failed, m.results = newFailedPane(), newResultsPane()
	m.cursorOutput = newOutputPane(0, false)
	m.panes = [numTabs]pane{m.jobs, m.hosts, m.failed, m.results, m.events}
	m.applySettings()
	return m
}

// isUndispatched reports whether the run has no dispatcher now.
func (m *model) isUndispatched() bool { return m.snap != nil && m.snap.Status != runview.StatusRunning }

// isCrashed reports whether the dispatcher is gone without having ended the run.
func (m *model) isCrashed() bool {
	return m.snap != nil && (m.snap.Status == runview.StatusCrashed || m.snap.Status == runview.StatusSilent)
}

// snapshotAge returns the age of the snapshot. Remaining waits in it are shorter by that time.
func (m *model) snapshotAge() time.Duration {
	if m.snap == nil {
		return 0
	}
	return max(0, m.now().Sub(m.snap.MadeAt))
}

// dispatcherNow returns the current time of the dispatcher's clock, as far as it is known.
func (m *model) dispatcherNow() time.Time {
	if m.snap == nil {
		return m.now()
	}
	return m.snap.At.Add(m.now().Sub(m.snap.MadeAt))
}

// showMessage shows a message for a while; showError shows an error.
func (m *model) showMessage(text string) {
	m.message = message{text: text, byKey: m.inPress, shownAt: m.now(), expiresAt: m.now().Add(8 * time.Second)}
}
func (m *model) showError(text string) {
	m.message = message{text: text, isError: true, byKey: m.inPress, shownAt: m.now(),
		expiresAt: m.now().Add(15 * time.Second)}
}

// dismissWarnings removes the warnings that the user has seen, because a key works now.
func (m *model) dismissWarnings() {
	if s := &m.message; s.isError && (s.byKey || m.now().Sub(s.shownAt) >= readTime) {
		m.message = message{}
	}
	m.events.dismissWarning(m)
}

// currentJob returns the job under the cursor of the focused pane or, without one there, of the
// list of jobs.
func (m *model) currentJob() (runview.Row, bool) {
	return m.focus().currentJob(m)
}

// focus returns the pane that receives the keys.
func (m *model) focus() pane {
	switch {
	case m.lowerFocused && (m.extra != nil || m.isShown(m.lowerPane())):
		return m.lowerPane()
	case m.focusedTab != m.tab && m.isShown(m.panes[m.focusedTab]):
		return m.panes[m.focusedTab]
	}
	return m.panes[m.tab]
}

// isShown reports whether a pane was visible when the screen was last drawn.
func (m *model) isShown(p pane) bool {
	return slices.ContainsFunc(m.placed, func(x placedPane) bool { return x.pane == p })
}

// openView shows a view, or moves the focus to it if it is visible.
func (m *model) openView(t tab) {
	m.lowerFocused, m.focusedTab = false, t
	if m.isShown(m.panes[t]) {
		return
	}
	if m.tab != tabHosts {
		m.previousTab = m.tab
	}
	m.tab, m.fullWidth = t, false
}

// openOrWiden is the action of the key of a view: it opens the view. If panes are shown
// beside the view that has the focus, its key switches it to full width and back.
func (m *model) openOrWiden(t tab) {
	m.jobs.back = nil
	if m.focus() != m.panes[t] {
		m.openView(t)
		return
	}
	m.lowerFocused, m.focusedTab = false, t
	switch {
	case m.viewZoomed:
		m.viewZoomed = false
	case !m.isWide() || t != tabHosts && !m.fullWidth && m.hasFullWidth(): // no pane is beside the view
		m.tab = t
	case m.tab == t && m.hasFullWidth():
		m.tab, m.fullWidth = m.previousTab, false
	default:
		m.previousTab, m.tab, m.fullWidth = m.tab, t, true
	}
}

// isWide reports whether the screen is wide enough for panes beside the view.
func (m *model) isWide() bool { return m.w >= wideW && m.h >= smallH }

// hasFullWidth reports whether the view has the full width of a wide screen. The hosts view always
// has it, because it is the pane that is shown beside the others. So have all views of a run whose
// hosts are not connected, as there is nothing to show of these.
func (m *model) hasFullWidth() bool {
	return m.fullWidth || m.tab == tabHosts || m.snap != nil && m.isUndispatched() &&
		!slices.ContainsFunc(m.snap.Hosts, func(h live.Host) bool { return h.State != jobs.HostUnknown })
}

// focusNext moves the focus to the next visible pane, or to the next view if there is only one
// pane.
func (m *model) focusNext(by int) tea.Cmd {
	if len(m.placed) <= 1 {
		m.openView((m.tab + tab(by) + numTabs) % numTabs)
		return nil
	}
	at := max(0, slices.IndexFunc(m.placed, func(x placedPane) bool { return x.pane == m.focus() }))
	m.focusOn(m.placed[(at+by+len(m.placed))%len(m.placed)].pane)
	return nil
}

// closeInnermost closes what is open, the innermost first.
func (m *model) closeInnermost() tea.Cmd {
	switch {
	case m.extra != nil:
		m.extra, m.lowerFocused, m.extraZoomed = nil, false, false
	case m.focus().clearSelectionOrFilter(m):
	case m.viewZoomed:
		m.viewZoomed = false
	case m.fullWidth && m.isWide():
		m.tab, m.fullWidth = m.previousTab, false
	case m.focus() != m.panes[m.tab]: // the same keys have another meaning from now on
		m.focusedTab, m.lowerFocused = m.tab, false
		m.showMessage("the keys are about " + tabNames[m.tab] + " now")
	case m.isUndispatched() && !m.summaryHidden:
		m.summaryHidden = true
	default:
		m.focusedTab, m.lowerFocused = m.tab, false
	}
	return nil
}

// buildQuery collects the requests of the visible panes.
func (m *model) buildQuery() runview.Query {
	var ask runview.Query
	for _, x := range m.placed {
		x.pane.addToQuery(m, &ask)
	}
	if p, ok := m.modal.(*textModal); ok && p.events != nil {
		ask.Events, ask.Host = p.events, p.host
	}
	if m.isUndispatched() {
		ask.Groups = true // for the summary
	}
	ask.Events = cmp.Or(ask.Events, &runview.EventsWindow{Rows: 20}) // for the newest bad event, in the footer
	return ask
}

// selectedOrCurrent returns the jobs that an action affects: the selected ones or, without a
// selection, the one under the cursor.
func (m *model) selectedOrCurrent() jobs.Ranges {
	if picked := m.focus().selectedJobs(m); len(picked) > 0 {
		return picked
	}
	if r, ok := m.currentJob(); ok {
		return jobs.One(r.ID)
	}
	return nil
}

var _ tea.Model = (*model)(nil)

func jobName(id jobs.ID) string { return "job " + itoa(int(id)) }

// reply is a message that runs in the screen's goroutine.
type reply func(*model) tea.Cmd

func (r reply) apply(m *model) tea.Cmd { return r(m) }

// clockTick is the message that advances the clocks on the screen.
type clockTick struct{}

// Init starts the requests to the source.
func (m *model) Init() tea.Cmd { return tea.Batch(m.snapshots.next, m.tick()) }

// Clocks advance one second after the last frame. After a snapshot, the next one may arrive in time
// to advance them.
const (
	clockInterval = time.Second
	snapshotDelay = 100 * time.Millisecond
)

func (m *model) tick() tea.Cmd {
	return tea.Tick(m.untilTick(), func(time.Time) tea.Msg { return clockTick{} })
}

// untilTick returns the time until the next clockTick is due.
func (m *model) untilTick() time.Duration {
	if ago := m.now().Sub(m.drawnAt); ago >= 0 && ago < clockInterval {
		return clockInterval + snapshotDelay - ago
	}
	return clockInterval
}

// Update handles one message. Then it passes the screen's request to the snapshotter.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	unchanged := !m.isNews(msg) && m.isStatic()
	cmd := m.handle(msg)
	if !unchanged || !m.isStatic() {
		m.frame, m.drawnAt = "", m.now()
	}
	m.updateQuery()
	return m, tea.Batch(cmd, m.readVisibleOutput())
}

// isNews reports whether a message, before it is handled, may change more on the screen than its
// clocks. The clocks alone are redrawn once a second (rule 3).
func (m *model) isNews(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case clockTick:
		return m.now().Sub(m.drawnAt) >= clockInterval // otherwise all clocks were just advanced
	case snapshotMsg:
		return !msg.unchanged
	case readDue:
		return false
	case pieceRead:
		return msg.changesPane()
	}
	return true
}

// isStatic reports whether nothing on the screen will expire without a message.
func (m *model) isStatic() bool { return m.message.text == "" && m.undo == nil && m.modal == nil }

func (m *model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.modal != nil {
			return m.modal.key(m, msg)
		}
		return m.press(msg.String())
	case tea.MouseMsg:
		return m.handleMouse(msg)
	case tea.PasteMsg:
		if p, ok := m.modal.(interface{ paste(*model, string) tea.Cmd }); ok {
			return p.paste(m, msg.Content)
		}
	case tea.ResumeMsg:
		m.opt.Suspended(false)
	case clockTick:
		if m.message.text != "" && m.now().After(m.message.expiresAt) {
			m.message = message{}
		}
		if m.undo != nil && m.now().After(m.undo.expiresAt) {
			m.undo = nil
		}
		return m.tick()
	case snapshotMsg:
		m.handleSnapshot(msg)
		return tea.Batch(m.snapshots.next, m.showQuestion())
	case interface{ apply(*model) tea.Cmd }: // replies, and messages of panes and modals
		return msg.apply(m)
	}
	return nil
}

// handleSnapshot handles a snapshot, or the error of the request for it.
func (m *model) handleSnapshot(msg snapshotMsg) {
	if msg.err != nil {
		m.snapshotErr = msg.err
		return
	}
	undone := action.Pause
	if msg.snap.Paused {
		undone = action.Continue
	}
	if m.snap != nil && m.snap.Paused != msg.snap.Paused && m.message.action == undone {
		m.message = message{} // another screen has changed it again
	}
	m.snap, m.snapshotErr = msg.snap, nil
	m.summaryHidden = m.summaryHidden && m.isUndispatched()
	m.groupTrouble()
	for _, p := range m.panes {
		p.onSnapshot(m)
	}
	if m.extra != nil {
		m.extra.onSnapshot(m)
	}
}

// updateQuery passes the screen's request to the snapshotter if it has changed. It draws first, to
// determine which panes are visible.
func (m *model) updateQuery() {
	if m.snapshots == nil {
		return
	}
	m.draw()
	ask := m.buildQuery()
	key := fmt.Sprintf("%+v %+v %+v %v %d %s", ask.Jobs, ask.Table, ask.Events, ask.Groups, ask.Focus, ask.Host)
	if key != m.requestKey {
		m.requestKey = key
		m.snapshots.setQuery(ask)
	}
}

// actTimeout bounds an action.
const actTimeout = 30 * time.Second

// callSource returns a command that runs ask outside the screen's goroutine, because the source may
// hang. The function that ask returns runs inside.
func callSource(limit time.Duration, ask func(context.Context) reply) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return ask(ctx)
	}
}

// startAction executes an action, shows its result, and stores what an undo needs.
func (m *model) startAction(q action.Request) tea.Cmd {
	if !m.mayRequest(q) {
		return nil
	}
	m.noteAction(q)
	src := m.src
	return callSource(actTimeout, func(ctx context.Context) reply {
		answer, err := src.Do(ctx, q)
		return func(m *model) tea.Cmd {
			m.handleAnswer(q, answer, err)
			return nil
		}
	})
}

// noteAction lets the cursors of the lists stay at their places if an action moves jobs away, and
// records actions on hosts. It confirms a request whose answer may take long.
func (m *model) noteAction(q action.Request) {
	switch q.Do {
	case action.DrainHost, action.StopHost, action.UseHost:
		m.hostActions[q.Host] = hostAction{verb: q.Do}
	case action.Resume: // it takes long if the silence of the last dispatcher must be observed first
		m.showMessage("a dispatcher is being started, after up to half a minute if the last one may be alive")
	case action.Cancel, action.Requeue, action.Edit: // a priority is changed by several keys in a row
		m.jobs.noteAction(q.Jobs)
		m.results.noteAction(q.Jobs)
	}
}

func (m *model) handleAnswer(q action.Request, answer *runview.Answer, err error) {
	m.noteHostAnswer(q, err)
	if err != nil {
		m.jobs.acted, m.results.acted = actedJob{}, actedJob{}
		m.showActionError(string(q.Do), err)
		return
	}
	if len(answer.Changed) > 0 && q.Do == action.Cancel {
		m.undo = &undo{jobs: answer.Changed, expiresAt: m.now().Add(undoTimeout)}
	}
	m.clearSelectionAfter(q)
	m.showMessage(answer.Text)
	m.message.action = q.Do
}

// showActionError shows why an action was not carried out.
func (m *model) showActionError(what string, err error) {
	if refused, ok := errors.AsType[*runview.Refused](err); ok {
		m.showError(refused.Why)
		return
	}
	m.showError(what + ": " + err.Error())
}

func itoa(n int) string { return strconv.Itoa(n) }
