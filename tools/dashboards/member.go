package main

// of are the matchers of the member that is chosen.
const of = `job=~"$job",member=~"$member"`

var member = board{
	name: "member", title: "Plimsoll / Member",
	about:     "One member: how the hub reaches it, what it asks there, and what works in it.",
	variables: []variable{ofJob, ofMember},
	rows: []row{
		{"Reach", []panel{
			{kind: timeline, title: "State", about: "The member's state over time, as any replica of the hub sees it.", wide: true,
				queries: one(`max by (state) (plimsoll_member_state{`+of+`}) == 1`, "{{state}}")},
			{kind: number, title: "Webhook reached", about: "1 while the member's API server reaches the webhook, 0 while it does not.",
				queries: one(`min(plimsoll_webhook_reached{`+of+`})`, "reached")},
			{kind: number, title: "Token expires in", about: "The hub renews it after two thirds of its life. Empty where the token does not expire.", unit: seconds,
				queries: one(`min(plimsoll_member_token_expiry_seconds{`+of+`})`, "left")},
			{kind: number, title: "Breaker open", about: "1 while requests to the member are refused because it does not answer.", red: 1,
				queries: one(`max(plimsoll_member_breaker_open{`+of+`})`, "open")},
			{kind: number, title: "Given up", about: "1 for a member that was detached by force.", red: 1,
				queries: one(orZero(`max(plimsoll_member_detached{`+of+`})`), "detached")},
			{kind: number, title: "Undecided pods", about: "Pods in the time shown that came without a decision of the webhook.", red: 1,
				queries: one(orZero(`sum(increase(plimsoll_pods_undecided_total{`+of+`}[$__range]))`), "pods")},
			{kind: number, title: "Dropped Events", about: "Events in the time shown that could not be recorded in the member.", red: 1,
				queries: one(orZero(`sum(increase(plimsoll_events_dropped_total{`+of+`}[$__range]))`), "events")},
		}},
		{"Requests", []panel{
			{title: "Requests by class and code", about: "fenced: this replica does not act. breaker: refused without asking. timeout, error: no answer.", unit: perSecond,
				queries: one(rate("class, code", `plimsoll_member_requests_total{`+of+`}`), "{{class}} {{code}}")},
			{title: "Time of requests", about: "Until the response headers, waiting for the client's own budget included.", unit: seconds,
				queries: quantiles("class", "plimsoll_member_request_duration_seconds", of)},
			{title: "Time of probes", about: "Of /readyz, failed ones included.", unit: seconds,
				queries: quantiles("", "plimsoll_member_probe_duration_seconds", of)},
			{title: "Age of caches", about: "For how long a kind has not been watched; 0 while its watch is open.", unit: seconds, red: 60,
				queries: []query{
					{`max by (kind) (plimsoll_member_cache_age_seconds{` + of + `})`, "{{kind}}"},
					{`max(plimsoll_dependency_watch_age_seconds{` + of + `})`, "dependencies"},
				}},
			{title: "Size of caches", about: "The approximate memory that a kind takes. clusters.maxCacheMiB limits the member's, clusters.maxTotalCacheMiB that of all members.", unit: binary,
				queries: one(`max by (kind) (plimsoll_member_cache_bytes{`+of+`})`, "{{kind}}")},
		}},
		{"Work", []panel{
			{title: "Reconciles by outcome", about: "Reconciles that ended.", unit: perSecond,
				queries: one(rate("controller, outcome", `plimsoll_reconcile_total{`+of+`}`), "{{controller}} {{outcome}}")},
			{title: "Failed reconciles", about: "Ended with an error, a panic or a missed deadline.", unit: perSecond,
				queries: one(rate("controller", `plimsoll_reconcile_errors_total{`+of+`}`), "{{controller}}")},
			{title: "Time of reconciles", about: "How long a reconcile takes.", unit: seconds,
				queries: quantiles("controller", "plimsoll_reconcile_duration_seconds", of)},
			{title: "Wait in the queue", about: "From the moment a key could run to the start of its reconcile.", unit: seconds,
				queries: quantiles("priority", "plimsoll_queue_wait_seconds", of)},
			{title: "Queue", about: "Keys that are queued or held. A standby holds all of them.", unit: count,
				queries: one("sum by (controller, priority) ("+owned(`plimsoll_queue_depth{`+of+`}`)+")", "{{controller}} {{priority}}")},
			{title: "Running, stuck and overdue", about: "Stuck: the deadline has passed. Overdue: objects in deletion that could not be cleaned up.", unit: count,
				queries: []query{
					{`sum by (controller) (plimsoll_reconciles_running{` + of + `})`, "{{controller}} running"},
					{`sum by (controller) (plimsoll_reconcile_stuck{` + of + `})`, "{{controller}} stuck"},
					{"max by (controller) (" + owned(`plimsoll_finalizers_overdue{`+of+`}`) + ")", "{{controller}} overdue"},
				}},
		}},
		{"New pods", []panel{
			{title: "Admissions by outcome", about: "A call that was forwarded is counted by the owner as well.", unit: perSecond,
				queries: one(rate("outcome", `plimsoll_admissions_total{`+of+`}`), "{{outcome}}")},
			{title: "Time of admissions", about: "From the head of a call to its answer. The member waits for 2 s at most.", unit: seconds,
				queries: quantiles("", "plimsoll_admission_duration_seconds", of)},
		}},
	},
}
