// Package slots decides which slot and capacity type every new pod of an owner gets, so that the on-demand floor stands and the mix
// is exact even while the cache lags behind.
//
// An [Accounting] is what is known about one ReplicaSet or StatefulSet: pods as the cache shows them, reservations for pods that were
// admitted and are not seen yet, and pods that were evicted or released a moment ago. [Accounting.Reserve] answers the admission of a
// pod; [Accounting.Summary] gives package plan what pods do not show. It does no I/O, asks for no time and draws no random number.
//
//   - accounting.go: pods as they are seen, and what evictions, releases and live lists change ([Accounting]);
//   - reserve.go, ordinals.go: the decision for a new pod ([Accounting.Reserve], [Answer], [Doubt]);
//   - reservation.go, reservations.go: slots that were promised, and how they end ([Accounting.Expire]);
//   - slots.go: how many pods hold each slot, and the lowest free one;
//   - takeover.go: what cannot be relied on after another replica decided ([Accounting.TakeOver]).
//
// It imports capacity, policy and plan.
package slots
