package grid

import (
	"slices"
	"strconv"
)

// sampleForm says how an @sample line is written.
const sampleForm = "write @sample 50, and behind it latin or random, seed 7, and of C, gamma, as you like"

// sampleLine reads `@sample 50 [random|latin] [seed 7] [of C, gamma]`.
func (p *parser) sampleLine(l *line, from int) {
	if p.sampled != nil {
		p.wrong.at(l, 0, "there is an @sample in line %d already", p.sampled.no)
		return
	}
	p.sampled = l
	words, at, err := splitWords(l.text, from)
	if err != nil {
		p.wrong.at(l, at, "%v", err)
		return
	}
	if len(words) == 0 {
		p.wrong.at(l, from, "how many points? %s", sampleForm)
		return
	}
	s := &sample{seed: 1}
	if s.n, err = strconv.Atoi(words[0].text); err != nil || s.n < 1 {
		p.wrong.at(l, words[0].offset, "%q is not a number of points: %s", words[0].text, sampleForm)
		return
	}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; w.text {
		case "random":
		case "latin":
			s.latin = true
		case "seed":
			if i++; i == len(words) {
				p.wrong.at(l, w.offset, "a whole number must follow seed: @sample 50 seed 7")
				return
			}
			if s.seed, err = strconv.ParseUint(words[i].text, 10, 64); err != nil {
				p.wrong.at(l, words[i].offset, "%q is not a seed: it is a whole number from 0", words[i].text)
				return
			}
		case "of":
			if s.of = p.sampledOf(l, w, words[i+1:]); s.of == nil {
				return
			}
			i = len(words)
		default:
			p.wrong.at(l, w.offset, "%q is not expected here: %s", w.text, sampleForm)
			return
		}
	}
	p.t.sample = s
}

// sampledOf reads the parameters behind `of`, the last word that is not one; nil after a fault.
func (p *parser) sampledOf(l *line, of word, words []word) (params []int) {
	if len(words) == 0 {
		p.wrong.at(l, of.offset, "parameters must follow of: @sample 50 of C, gamma draws values for them, and each is taken with all values of the others")
	}
	for _, w := range words {
		i, ok := p.paramAt(l, w.text, w.offset)
		if !ok {
			return nil
		}
		params = append(params, i)
	}
	slices.Sort(params)
	return params
}
