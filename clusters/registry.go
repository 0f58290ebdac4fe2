package clusters

import (
	"context"
	"slices"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// What actors share: who is there, which member has which name, and what is reported about it.

// notice wakes the actor of name, which is made if there is none.
func (p *Provider) notice(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return
	}
	a := p.actors[name]
	if a == nil {
		a = &actor{p: p, name: name, wake: notify.New(), turns: newSpacing(p.opts.backoff())}
		p.actors[name] = a
		ctx := p.ctx
		p.running.Go(func() { a.run(ctx) })
	}
	a.poke()
}

// farewell makes it known that a registration is gone.
func (p *Provider) farewell(a *actor) {
	last := a.status
	a.status, a.breaker = Status{}, false
	p.mu.Lock()
	delete(p.statuses, a.name)
	p.mu.Unlock()
	if last.Name != "" {
		p.metrics.forget(a.name)
		p.log.Info("member left", "member", a.name)
		p.subs.Publish(Event{Status: last, Removed: true})
	}
}

// retire removes an actor whose registration is gone, after everything it had to say was said. It returns false if there
// is a registration again.
func (p *Provider) retire(a *actor) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.secrets.get(a.name) != nil {
		a.poke()
		return false
	}
	delete(p.actors, a.name)
	return true
}

// vet vets the registration of name.
func (p *Provider) vet(name string, want *desired) (*kubeconfig.Vetted, error) {
	if slices.Contains(p.opts.ReservedNames, name) {
		return nil, kubeconfig.Refuse(kubeconfig.ReasonInvalidName, "the Secret's name is the member's name, and this one is reserved")
	}
	if want.layout.refused {
		return nil, kubeconfig.Refuse(want.layout.reason, "%s", want.layout.message)
	}
	var namespaces []string
	if want.namespaces != nil {
		var err error
		if namespaces, err = ParseNamespaces(*want.namespaces); err != nil {
			return nil, err
		}
	}
	vetted, err := kubeconfig.Vet(name, want.kubeconfig, p.opts.Rules)
	if err != nil {
		return nil, err
	}
	vetted.Namespaces = namespaces
	return vetted, nil
}

// claim claims clusters for name, and wakes the actors that this may concern.
func (p *Provider) claim(name string, claims ...claim) {
	for _, other := range p.claims.set(name, claims...) {
		p.notice(other)
	}
	p.prove(name)
}

// memberOptions are what the members of one actor are made with.
func (p *Provider) memberOptions(a *actor) memberOptions {
	p.mu.RLock()
	defer p.mu.RUnlock()
	opts := p.opts
	opts.Access = p.access
	return memberOptions{
		pace: *a.pace, joins: p.joins, fleet: p.caches, paths: p.paths,
		Options: opts, kinds: p.declared, metrics: p.metrics, changed: a.poke,
		onBreak: func(bool) { a.poke() },
	}
}

// track gives a new member the indexes that were added, now and later.
func (p *Provider) track(member *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive[member] = struct{}{}
	p.caches.Join(member.warmer.budget)
	for _, index := range p.indexes {
		_ = member.GetFieldIndexer().IndexField(context.Background(), index.object, index.field, index.extract)
	}
}

// untrack forgets a member that has stopped. Its last requests may have brought back metrics of a name that has left.
func (p *Provider) untrack(member *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, member)
	p.caches.Leave(member.warmer.budget)
	if p.actors[member.name] == nil {
		p.metrics.forget(member.name)
	}
}

// install makes member the one that Get returns for its name.
func (p *Provider) install(member *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members[member.name] = member
}

// unpublish undoes install, unless another member has taken the name since.
func (p *Provider) unpublish(member *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members[member.name] == member {
		delete(p.members, member.name)
	}
}

// publish makes a status known to everybody who asks or subscribed.
func (p *Provider) publish(a *actor, status Status, breaker bool) {
	before := a.status
	a.status = status
	if a.running != nil {
		a.running.member.status.Store(&status)
	}
	p.mu.Lock()
	p.statuses[a.name] = status
	p.mu.Unlock()
	if before.Name != "" && breaker == a.breaker && onlyProbed(before, status) {
		return
	}
	open := 0.0
	if breaker {
		open = 1
	}
	p.metrics.breaker.WithLabelValues(a.name).Set(open)
	p.record.changed(before, status)
	p.subs.Publish(Event{Status: status, BreakerOpen: breaker})
}
