package grid

import (
	"fmt"
	"slices"
	"strings"

	"dcs-tui/jobs"
)

// paths holds send= and return= of a command if they name parameters.
type paths struct{ send, returns [][]piece }

// newPaths returns the paths of a command, or nil if they name no parameter. returns are further
// patterns, of the command line.
func (p *parser) newPaths(o *jobs.Options) *paths {
	split := func(list []string) (all [][]piece, named bool) {
		for _, text := range list {
			all = append(all, pieces(text, p.known, func(reference) bool { return false }))
			named = named || p.namesParam(references(text))
		}
		return all, named
	}
	send, sends := split(o.Send)
	returns, named := split(slices.Concat(o.Return, p.t.Returns))
	if !sends && !named {
		return nil
	}
	return &paths{send, returns}
}

// takeReturns moves the patterns that name a parameter to Template.Returns.
func (p *parser) takeReturns() {
	for _, text := range p.Return {
		if p.namesParam(references(text)) {
			p.t.Returns = append(p.t.Returns, text)
		}
	}
}

// fill returns options with the values of parameters in their paths.
func (f *paths) fill(o *jobs.Options, params []jobs.Param) *jobs.Options {
	made := *o
	made.Send, made.Return = nil, nil
	for _, parts := range f.send {
		made.Send = append(made.Send, fill(parts, params, verbatim))
	}
	for _, parts := range f.returns {
		made.Return = append(made.Return, fill(parts, params, jobs.QuotePattern))
	}
	return &made
}

// check returns an error if values lead out of the directory of the job.
func (f *paths) check(s *jobs.Spec, params []jobs.Param) error {
	for _, part := range slices.Concat(f.send...) {
		if part.param >= 0 && strings.Contains(params[part.param].Value, ":") {
			return fmt.Errorf("send: the value %s of [%s] has a colon, which ends the path",
				quoteText(params[part.param].Value), params[part.param].Name)
		}
	}
	for _, item := range s.Send {
		path, _, _ := strings.Cut(item, ":")
		if err := jobs.CheckLocal(path); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	if _, err := jobs.ParseReturn(s.Return); err != nil {
		return fmt.Errorf("return: %w", err)
	}
	return nil
}

func verbatim(value string) string { return value }
