package shapes

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// maxParsed shapes, with maxParsedBytes of text together, are kept in the form in which they are used, which may take ten times the
// memory of their text. The texts are in caches, whose budgets count them; this form is counted nowhere else.
const maxParsed, maxParsedBytes = 1 << 13, 2 << 20

// A Shape is what the text of a shape says. It is shared, and never changed.
type Shape struct {
	Requirements capacity.Requirements
	Needs        capacity.NodeRequirements
	Constraints  []corev1.TopologySpreadConstraint // that must hold
}

// Parser reads the texts of shapes, and keeps what they say as long as there is room: so that who needs a shape often can do
// with its text. The zero value is ready. It is safe for concurrent use.
type Parser struct {
	mu    sync.RWMutex
	known map[string]*Shape
	bytes int // of the texts
}

// once returns the requirements of a text, which is not kept parsed if it was not before.
func (p *Parser) once(text string) (capacity.Requirements, error) {
	p.mu.RLock()
	shape := p.known[text]
	p.mu.RUnlock()
	if shape != nil {
		return shape.Requirements, nil
	}
	return capacity.ParseRequirements(text)
}

// Parse returns what a text says; the errors are those of [capacity.ParseRequirements].
func (p *Parser) Parse(text string) (*Shape, error) {
	p.mu.RLock()
	shape := p.known[text]
	p.mu.RUnlock()
	if shape != nil {
		return shape, nil
	}
	requirements, err := capacity.ParseRequirements(text)
	if err != nil {
		return nil, err
	}
	shape = &Shape{Requirements: requirements, Needs: capacity.NodeRequirementsOf(requirements), Constraints: requirements.SpreadConstraints()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[text]; known != nil {
		return known, nil // somebody else was faster
	}
	if p.bytes += len(text); p.known == nil || len(p.known) >= maxParsed || p.bytes > maxParsedBytes {
		p.known = map[string]*Shape{}
		p.bytes = len(text)
	}
	p.known[text] = shape
	return shape, nil
}
