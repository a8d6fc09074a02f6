package grid

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"dcs-tui/grid/search"
)

// optimizer is a program of the user's that proposes trials: a co-process that reads and
// writes lines of JSON (docs/reference/protocol.md).
type optimizer struct {
	search *Search
	params []search.Param
	dir    string

	cmd  *exec.Cmd // nil: not started
	kill func()    // ends the program
	in   io.WriteCloser
	out  *bufio.Scanner
	errs tailBuffer
	told []search.State // state of each trial as last sent to the program
}

// notSent is the state of a trial that was not sent to the program.
const notSent search.State = 255

// maxProposal is the maximum size of a line that the program writes, in bytes.
const maxProposal = 1 << 20

// optimizerTimeout is how long the program has to end after a stop.
const optimizerTimeout = 5 * time.Second

// optimizerLine is a line that the program reads.
type optimizerLine struct {
	Do    string `json:"do"` // start, tell, ask, or stop
	Trial int    `json:"trial,omitempty"`
	// In a tell: a number or a text for each parameter.
	Params   map[string]any `json:"params,omitempty"`
	State    string         `json:"state,omitempty"` // of tell: open, done, or failed
	Value    *float64       `json:"value,omitempty"`
	Space    []spaceParam   `json:"space,omitempty"` // of start
	Trials   int            `json:"trials,omitempty"`
	Minimize *bool          `json:"minimize,omitempty"`
	Seed     uint64         `json:"seed,omitempty"`
	// Number of following trials of an earlier dispatcher.
	Known int `json:"known,omitempty"`
}

type spaceParam struct {
	Name   string   `json:"name"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Log    bool     `json:"log,omitempty"`
	Values []string `json:"values,omitempty"`
}

// proposal is a line that the program writes.
type proposal struct {
	Params map[string]any `json:"params"`
	Stop   bool           `json:"stop"` // the program proposes no more trials
}

// Propose implements search.Proposer.
func (o *optimizer) Propose(ctx context.Context, past []search.Trial) ([]float64, error) {
	if o.cmd == nil {
		if err := o.start(len(past)); err != nil {
			return nil, o.failed(err)
		}
	}
	defer context.AfterFunc(ctx, o.kill)()
	if err := o.sendChanges(past); err != nil {
		return nil, o.failed(err)
	}
	if err := o.write(optimizerLine{Do: "ask", Trial: len(past) + 1}); err != nil {
		return nil, o.failed(err)
	}
	if !o.out.Scan() {
		err := o.out.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, o.failed(err)
	}
	at, err := readProposal(o.out.Bytes(), o.params)
	if err == nil {
		o.told = append(o.told, search.Open)
	}
	return at, err
}

// sendChanges sends the program the changes since the last tell.
func (o *optimizer) sendChanges(past []search.Trial) error {
	for i, t := range past {
		if i == len(o.told) {
			o.told = append(o.told, notSent)
		}
		if o.told[i] == t.State {
			continue
		}
		o.told[i] = t.State
		line := optimizerLine{Do: "tell", Trial: i + 1, State: [...]string{"open", "done", "failed"}[t.State],
			Params: map[string]any{}}
		for d, u := range t.At {
			p := &o.params[d]
			line.Params[p.Name] = p.Text(u)
			if len(p.Values) == 0 {
				line.Params[p.Name] = json.Number(p.Text(u))
			}
		}
		if value := t.Value; t.State == search.Done {
			if o.search.Maximize {
				value = -value
			}
			line.Value = &value
		}
		if err := o.write(line); err != nil {
			return err
		}
	}
	return nil
}

func (o *optimizer) start(known int) error {
	var living context.Context
	living, o.kill = context.WithCancel(context.Background())
	cmd := shellCommand(living, o.dir, o.search.Command)
	cmd.Stderr = &o.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	o.cmd, o.in, o.out = cmd, in, bufio.NewScanner(out)
	o.out.Buffer(nil, maxProposal)
	line := optimizerLine{Do: "start", Trials: o.search.Trials, Minimize: new(!o.search.Maximize), Seed: o.search.Seed,
		Known: known}
	for i := range o.params {
		p := &o.params[i]
		s := spaceParam{Name: p.Name, Values: p.Values}
		if len(p.Values) == 0 {
			s.Low, s.High, s.Log = &p.Low, &p.High, p.Log
		}
		line.Space = append(line.Space, s)
	}
	return o.write(line)
}

func (o *optimizer) write(line optimizerLine) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = o.in.Write(append(b, '\n'))
	return err
}

// failed ends the program and returns an error that contains its output.
func (o *optimizer) failed(err error) error {
	if o.cmd != nil {
		o.kill()
		_ = o.cmd.Wait()
	}
	o.cmd, o.told = nil, nil
	return fmt.Errorf("the optimizer %s ended or cannot be spoken to (%w)%s", quoteText(o.search.Command), err,
		o.errs.lastLines())
}

// Close implements search.Proposer. It sends the results of the last trials to the program.
func (o *optimizer) Close(past []search.Trial) {
	if o.cmd == nil {
		return
	}
	defer o.kill()
	kill := time.AfterFunc(optimizerTimeout, o.kill)
	defer kill.Stop()
	if o.sendChanges(past) == nil {
		_ = o.write(optimizerLine{Do: "stop"})
	}
	o.in.Close()
	_ = o.cmd.Wait()
}

// readProposal reads a line of the program: a value for each parameter.
func readProposal(line []byte, params []search.Param) ([]float64, error) {
	var p proposal
	if err := json.Unmarshal(line, &p); err != nil {
		return nil, fmt.Errorf("the optimizer wrote %s, which is not a proposal: %w", quoteText(string(line)), err)
	}
	if p.Stop {
		return nil, io.EOF
	}
	at := make([]float64, len(params))
	for d := range params {
		v, ok := p.Params[params[d].Name]
		if !ok {
			return nil, fmt.Errorf("the optimizer proposed no value of %s", params[d].Name)
		}
		if at[d], ok = params[d].Coordinate(fmt.Sprint(v)); !ok {
			return nil, fmt.Errorf("the optimizer proposed %s=%s, which the template does not allow", params[d].Name,
				quoteText(fmt.Sprint(v)))
		}
	}
	return at, nil
}
