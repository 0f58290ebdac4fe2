package clusters

// report is a snapshot of everything that a status is made of.
type report struct {
	healthReport

	server     string
	namespaces []string
	admitted   bool
	kinds      []kindReport
	warmings   uint64
	denied     []string
	checked    bool
}

func (m *Member) report() *report {
	r := &report{
		healthReport: m.health.report(), server: m.vetted.Server, namespaces: m.vetted.Namespaces, admitted: m.isAdmitted(), warmings: m.warmer.warmings.Load(),
	}
	for _, kind := range m.kinds {
		r.kinds = append(r.kinds, kind.report())
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	r.denied, r.checked = m.denied, m.checked
	return r
}

// settled reports whether every kind has been tried once.
func (r *report) settled() bool {
	for _, kind := range r.kinds {
		if !kind.tried {
			return false
		}
	}
	return r.admitted
}

// warm reports whether any kind is cached.
func (r *report) warm() bool {
	for _, kind := range r.kinds {
		if kind.Engaged {
			return true
		}
	}
	return false
}

// covers reports whether r caches every kind that other caches.
func (r *report) covers(other *report) bool {
	for i, kind := range other.kinds {
		if kind.Engaged && !r.kinds[i].Engaged {
			return false
		}
	}
	return true
}
