package journal

import (
	"cmp"
	"maps"
	"slices"
)

// orders counts requeues by member and by who asked for them.
type orders map[string]map[string]int

// note counts an event in, or out.
func (o orders) note(e *Event, n int) {
	if e.Type != Requeue {
		return
	}
	of := o[e.Member]
	if of == nil {
		of = map[string]int{}
		o[e.Member] = of
	}
	if of[e.User] += n; of[e.User] == 0 {
		delete(of, e.User)
	}
	if len(of) == 0 {
		delete(o, e.Member)
	}
}

// of is how many requeues of a member there are, and who asked for the most of them.
func (o orders) of(member string) (total int, user string) {
	for _, n := range o[member] {
		total += n
	}
	return total, most(o[member])
}

// all is how many requeues there are, who asked for the most of them, and in which member for the most of these.
func (o orders) all() (total int, member, user string) {
	users := map[string]int{}
	for _, of := range o {
		for who, n := range of {
			users[who] += n
			total += n
		}
	}
	user = most(users)
	there := map[string]int{}
	for name, of := range o {
		there[name] = of[user]
	}
	return total, most(there), user
}

// most is the key of the largest number, of several the first.
func most(counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	return slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// boundOrders keeps requeues from pushing out what else happened in a member, or in others. The lock is held.
func (j *Journal) boundOrders(member string) {
	if total, user := j.orders.of(member); total > max(1, j.limits.OfMember/4) {
		j.dropOrder(member, user)
	}
	if total, member, user := j.orders.all(); total > max(1, j.limits.Most/4) {
		j.dropOrder(member, user)
	}
}

// dropOrder forgets the oldest requeue of a user in a member. The lock is held.
func (j *Journal) dropOrder(member, user string) {
	m := j.members[member]
	if m == nil {
		return
	}
	if i := slices.IndexFunc(m.events, func(e Event) bool { return e.Type == Requeue && e.User == user }); i >= 0 {
		j.drop(member, i)
	}
}
