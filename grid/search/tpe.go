package search

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// TPE is the name of the tree-structured Parzen estimator.
const TPE = "tpe"

// tpe proposes trials by the tree-structured Parzen estimator: J. Bergstra, R. Bardenet, Y. Bengio,
// B. Kégl, "Algorithms for Hyper-Parameter Optimization", NIPS 2011. It models the good trials and
// the other trials by one density each, and proposes the candidate from the good density with the
// largest ratio of the two. Open trials belong to the others ("constant liar"), so that the next
// proposal is not close to them.
//
// The kernels are over all dimensions at once, as S. Watanabe recommends (Tree-Structured Parzen
// Estimator, arXiv:2304.11127, 2023), and early trials have a lower weight among the others, as in
// Optuna. The good trials are weighted by rank, as in CMA-ES, which allows more of them and
// narrower kernels: on the functions of the tests this halved the regret.
type tpe struct {
	params  []Param
	seed    uint64
	startup [][]float64
}

const (
	startupTrials = 10   // trials before the first one that uses their results
	maxGood       = 25   // number of trials
	goodShare     = 0.15 // share of the finished trials
	kernelWidth   = 0.07 // width for one trial; larger while there are few
	numCandidates = 24
	maxOthers     = 1000 // number of trials; older ones are forgotten to bound the cost of a proposal
)

// NewTPE returns a Proposer that learns.
func NewTPE(params []Param, seed uint64) Proposer {
	return &tpe{params: params, seed: seed, startup: Design(Halton, 1000, len(params), seed)}
}

// Close implements Proposer.
func (t *tpe) Close([]Trial) {}

// Propose implements Proposer.
func (t *tpe) Propose(_ context.Context, past []Trial) ([]float64, error) {
	good, others, done := t.split(past)
	if done < startupTrials && len(past) < len(t.startup) {
		return t.startup[len(past)], nil
	}
	r := rand.New(rand.NewPCG(t.seed, uint64(len(past))+1))
	l, g := t.estimate(good, rankWeight), t.estimate(others, ageWeight)
	var best []float64
	most := math.Inf(-1)
	for range numCandidates {
		x := l.sample(r)
		if ratio := l.log(x) - g.log(x); best == nil || ratio > most {
			best, most = x, ratio
		}
	}
	return best, nil
}

// split returns the good trials, best first, and the newest of the others in the order of their
// proposal. done is the number of trials that have ended. Failed trials belong to the others, so
// that the next proposal is not close to them, and count among those of which a share is good, as
// Optuna treats trials that were pruned without a value.
func (t *tpe) split(past []Trial) (good, others [][]float64, done int) {
	for i := range past {
		if past[i].State != Open {
			done++
		}
	}
	var order []int // the best trials
	most := min(int(math.Ceil(goodShare*float64(done))), maxGood)
	for i := range past {
		if past[i].State != Done {
			continue
		}
		at := len(order) // of equal trials, the first is better
		for at > 0 && cmp.Less(past[i].Value, past[order[at-1]].Value) {
			at--
		}
		if at < most {
			order = slices.Insert(order[:min(len(order), most-1)], at, i)
		}
	}
	for i := len(past) - 1; i >= 0 && len(others) < maxOthers; i-- {
		if past[i].At != nil && !slices.Contains(order, i) {
			others = append(others, past[i].At)
		}
	}
	slices.Reverse(others)
	for _, i := range order {
		good = append(good, past[i].At)
	}
	return good, others, done
}

// parzen is a mixture of kernels. The last one is the prior, which is nearly uniform.
type parzen struct {
	params  []Param
	kernels [][]float64 // centers
	weights []float64   // their sum is 1
	width   float64     // width of all kernels except the prior
	tops    []float64   // log of each kernel's weight times its density at its center; without unordered parameters
	terms   []float64   // for the use of log
}

// rankWeight returns the weight of good trial i of n. The prior is the last.
func rankWeight(i, n int) float64 { return math.Log(float64(n)+1.5) - math.Log(float64(i)+1) }

// ageWeight returns the weight of a trial among the others: 1 for the newest ones, and less for
// older ones.
func ageWeight(i, n int) float64 {
	if old := n - maxGood; i < old {
		return 1/float64(n) + float64(i)/float64(max(1, old-1))*(1-1/float64(n))
	}
	return 1
}

// estimate makes the density of the given trials.
func (t *tpe) estimate(trials [][]float64, weight func(i, n int) float64) *parzen {
	n, dims := len(trials), len(t.params)
	p := &parzen{params: t.params, kernels: append(slices.Clone(trials), make([]float64, dims)),
		weights: make([]float64, n+1)}
	sum := 0.0
	for i := range p.weights {
		p.weights[i] = weight(i, n)
		sum += p.weights[i]
	}
	for i := range p.weights {
		p.weights[i] /= sum
	}
	for d := range dims {
		p.kernels[n][d] = 0.5
	}
	p.width = max(kernelWidth*math.Pow(float64(max(1, n)), -1/float64(dims+4)), 1/float64(n+2))
	p.tops, p.terms = make([]float64, n+1), make([]float64, n+1)
	for i := range p.tops {
		p.tops[i] = math.Log(p.weights[i])
		for d := range dims {
			if !p.params[d].unordered() {
				center, width := p.kernel(i, d)
				p.tops[i] -= math.Log(width * math.Sqrt(2*math.Pi) * (normal((1-center)/width) - normal(-center/width)))
			}
		}
	}
	return p
}

// kernel returns the center and the width of a kernel in a dimension that is a range.
func (p *parzen) kernel(i, d int) (center, width float64) {
	if i == len(p.kernels)-1 {
		return 0.5, 1
	}
	return p.kernels[i][d], p.width
}

// sample draws a point.
func (p *parzen) sample(r *rand.Rand) []float64 {
	i, u := 0, r.Float64()
	for u -= p.weights[0]; u > 0 && i < len(p.kernels)-1; u -= p.weights[i] {
		i++
	}
	x := make([]float64, len(p.params))
	for d := range x {
		if p.params[d].unordered() {
			x[d] = p.choice(i, d, r)
			continue
		}
		center, width := p.kernel(i, d)
		low, high := normal(-center/width), normal((1-center)/width)
		x[d] = min(max(center+width*math.Sqrt2*math.Erfinv(2*(low+(high-low)*r.Float64())-1), 0), 1)
	}
	return x
}

// log returns the logarithm of the density at x.
func (p *parzen) log(x []float64) float64 {
	most := math.Inf(-1)
	for i := range p.terms {
		term := p.tops[i]
		for d := range x {
			if p.params[d].unordered() {
				term += math.Log(p.share(i, d, x[d]))
				continue
			}
			center, width := p.kernel(i, d)
			z := (x[d] - center) / width
			term -= z * z / 2
		}
		p.terms[i] = term
		most = max(most, term)
	}
	sum := 0.0
	for _, term := range p.terms {
		sum += math.Exp(term - most)
	}
	return most + math.Log(sum)
}

// normal returns the distribution function of the standard normal distribution.
func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// unordered reports whether the values have no order.
func (p *Param) unordered() bool { return len(p.Values) > 0 && !p.Ordered }

// share returns the probability that a kernel gives to a value of an unordered parameter. A kernel
// gives each value the weight of the prior among the kernels, and adds 1 for its own value.
func (p *parzen) share(i, d int, x float64) float64 {
	values := len(p.params[d].Values)
	if i == len(p.kernels)-1 {
		return 1 / float64(values)
	}
	weight := 1 / float64(len(p.kernels))
	share := weight
	if valueAt(p.kernels[i][d], values) == valueAt(x, values) {
		share++
	}
	return share / (1 + weight*float64(values))
}

// choice draws a value of an unordered parameter.
func (p *parzen) choice(i, d int, r *rand.Rand) float64 {
	values, u := len(p.params[d].Values), r.Float64()
	for k := range values {
		x := (float64(k) + 0.5) / float64(values)
		u -= p.share(i, d, x)
		if u < 0 || k == values-1 {
			return x
		}
	}
	return 0
}

// valueAt returns the index of the value at a coordinate.
func valueAt(u float64, values int) int { return min(values-1, int(max(0, u)*float64(values))) }
